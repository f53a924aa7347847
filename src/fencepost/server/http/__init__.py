"""HTTP and WebSockets: routes, requests, responses, descriptions.

- `handlers/`: the handlers of the operations, one module for each resource
- `app`: `create_app`: the server as an ASGI application
- `asyncapi`: the AsyncAPI 3.0 description of sockets, streams, MQTT topics and webhooks
- `browser_safety`: `BrowserSafety`: protects a server without keys from pages of other sites
- `message_streams`: messages of a subscriber over WebSockets and server-sent events
- `operations`: `operation`: declares the route, types and OpenAPI description of a handler
- `problems`: `RequestError`, and errors as responses (RFC 9457)
- `publish_socket`: publishing events of moving objects over a WebSocket, with safe regions
- `request_bodies`: reads request bodies: JSON, and events in four formats
- `schemas`: the JSON objects of requests, responses and frames, as Structs
- `websockets`: `serve_socket`: opens, reads and closes WebSockets
"""
