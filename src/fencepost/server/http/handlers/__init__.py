"""What is done for each operation; a module for each thing that can be asked about.

- `admin`: Keys, dead letters, and numbers about the server and a tenant, as JSON and for
  Prometheus
- `console_data`: What the console asks: who it is, where subscriptions are, and what matched
- `endpoints`: Where the messages of a subscriber are posted, and sending dead letters again
- `events`: Publishing events, and looking at those that came
- `preview`: What an expression would answer, and why an event matches or not
- `subscribers`: Subscribers: their messages, how far they have read, where messages are posted
- `subscriptions`: Making, replacing, removing and listing subscriptions
"""
