"""Messages handed over to endpoints: the outbox and its transports.

- `transports/`: Ways to hand messages over
- `outbox`: What a server hands over by itself: messages of subscribers who have an endpoint
"""
