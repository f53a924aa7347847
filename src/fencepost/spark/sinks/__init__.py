"""Where matches go: Parquet files, an MQTT broker, webhooks; each safe to run again."""
