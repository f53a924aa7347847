"""The single writer: publications, transactions, and the subscriptions they are matched with.

- `broker`: The broker: whatever changes durable state goes through one thread, in one order
- `mqtt_events`: Events that come in over MQTT
- `publications`: Publications: events that are matched and logged together, and what each
  publisher is told
- `subscription_definitions`: What a subscriber asks: a JSON object, checked and compiled before
  anything is changed
- `tenant_subscriptions`: The standing questions of one tenant, and what events answer of them
- `transaction`: A transaction of the broker: what may be changed in it, and what it will hand on
"""
