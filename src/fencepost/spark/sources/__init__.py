"""Sources of events, most of them streams.

- `event_frames`: `read_events`, which reads a file or a folder of events
- `json_payloads`: `events_of`, which reads JSON payloads as columns
- `mqtt_client`: MQTT clients, from the options of a source or sink
- `mqtt_receiver`: `Receiver`, which writes an MQTT broker's messages to a spool
- `mqtt_source`: `read_mqtt`, a streaming source that reads an MQTT broker through a spool
- `spool`: `SpoolWriter` and `SpoolReader`, a queue of messages on disk
- `spool_files`: the files of a spool and their frames
"""
