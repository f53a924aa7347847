"""Streams of events into Spark.

- `json_payloads`: From messages to events: JSON payloads as columns, and what cannot be read as
  dead letters
- `mqtt_client`: Clients of an MQTT broker, made from the options of a source or a sink
- `mqtt_receiver`: From a broker into a spool: a message is acknowledged when it is on disk, not
  before
- `mqtt_source`: A streaming source of Spark that reads what an MQTT broker publishes
- `spool`: A spool: messages on disk in the order they came, each at a position that never changes
- `spool_files`: A segment of a spool: a file of frames, each a group of messages that was written
  at once
"""
