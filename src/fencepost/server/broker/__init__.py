"""The single writer: publications, transactions, and the subscriptions that events match.

- `broker`: `Broker`: every change of durable state goes through its thread, in one order
- `mqtt_events`: `MqttEvents`: publishes the events that arrive over MQTT
- `publications`: `publish_batch`: events of several publications matched and logged together
- `subscription_definitions`: `Definition`: the JSON of a subscription, checked
- `tenant_subscriptions`: `TenantSubscriptions`: all subscriptions of one tenant, and the messages
  that events cause
- `transaction`: `Transaction`: what work in the broker's thread may change, and what a commit added
"""
