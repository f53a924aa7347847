"""How messages reach subscribers: envelopes, live queues, webhooks and MQTT."""
