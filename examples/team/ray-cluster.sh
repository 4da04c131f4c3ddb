#!/bin/sh
# A model too large for one machine: tensor parallel in each, pipeline parallel across them; vLLM over Ray.
#   ray-cluster.sh head          on the first machine, which then serves
#   ray-cluster.sh worker HEAD   on each other one
# Ray's and vLLM's own connections are neither encrypted nor authenticated: a network of their own, or a tunnel.
set -eu
case "${1:-}" in
head)
    ray start --head --port=6379 --node-ip-address="${NODE_IP:?address of this machine in the network of its own}" \
        --dashboard-host=127.0.0.1
    VLLM_HOST_IP="$NODE_IP" exec vllm serve "${MODEL:?folder of the model, the same on all machines}" \
        --served-model-name code --host 127.0.0.1 --port 8000 --distributed-executor-backend ray \
        --tensor-parallel-size "${GPUS:-8}" --pipeline-parallel-size "${MACHINES:-2}" \
        --max-model-len 8192 --max-num-seqs 64 --enable-prefix-caching --disable-uvicorn-access-log
    ;;
worker)
    VLLM_HOST_IP="${NODE_IP:?address of this machine in the network of its own}" \
        exec ray start --address="${2:?address of the head}:6379" --node-ip-address="$NODE_IP" --block
    ;;
*)
    echo "usage: $0 head | worker HEAD" >&2
    exit 2
    ;;
esac
