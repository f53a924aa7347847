"""Messages handed over to endpoints: the outbox and its transports."""
