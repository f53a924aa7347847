"""HTTP and WebSockets: routes, requests, answers, descriptions.

- `handlers/`: What is done for each operation; a module for each thing that can be asked about
- `app`: The server as an ASGI application: operations become routes, errors become problems
- `asyncapi`: The AsyncAPI 3.0 description of the channels: sockets, streams, topics and webhooks
- `browser_safety`: The console, and what a server that needs no key must refuse of browsers
- `message_streams`: Messages as they come: WebSockets and server-sent events
- `operations`: What can be asked over HTTP, declared once: routes and the OpenAPI description
  come from it
- `problems`: What is said when something is refused: RFC 9457, one shape for all
- `publish_socket`: Publishing over a WebSocket, for things that move: each event is answered with
  a safe region
- `request_bodies`: What a request holds: JSON values, events in four formats, subscriptions one
  or many
- `schemas`: What requests, answers and frames hold, each described once, as a Struct
- `websockets`: What WebSockets have in common: how one is opened, read and closed
"""
