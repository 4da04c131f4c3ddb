#!/bin/sh
# All tests of the Neovim plugin N times in a row, and how many of the runs passed: neovim_repeat.sh N [OPTIONS OF PYTEST]
count=$1
shift
passed=0
for run in $(seq "$count"); do
    if "${PYTHON:-python}" -m pytest -q "$(dirname "$0")"/test_neovim*.py "$@"; then
        passed=$((passed + 1))
    fi
    echo "$passed of $run runs passed"
done
[ "$passed" -eq "$count" ]
