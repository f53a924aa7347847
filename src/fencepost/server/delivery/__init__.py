"""Delivery of messages to the endpoints of subscribers.

- `transports/`: the transports: webhooks and MQTT
- `outbox`: `EndpointDelivery`: delivers committed messages to endpoints
"""
