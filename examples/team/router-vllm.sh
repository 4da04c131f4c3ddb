#!/bin/sh
# Instead of nginx's own hash: the router of vLLM's production stack, behind nginx, which names the user. A session stays at
# one replica by a hash ring over the header's value. nginx.conf then has one server in `replicas`: 127.0.0.1:8100.
# From the source of github.com/vllm-project/production-stack (`pip install .`); PyPI's package of the same name is another
# router, github.com/vllm-project/router: vllm-router --policy consistent_hash --worker-urls URL URL (by X-Session-ID).
exec vllm-router --host 127.0.0.1 --port 8100 \
    --service-discovery static \
    --static-backends "http://127.0.0.1:8000,http://127.0.0.1:8001" \
    --static-models "code,code" \
    --routing-logic session --session-key x-user-id \
    --log-level warning
