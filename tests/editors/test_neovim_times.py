"""How long the plugin keeps Neovim from anything else, in a file of 10,000 lines."""

from __future__ import annotations

from statistics import median

from tests.editors.common import STUB
from tests.editors.neovim_editor import editing
from tests.editors.neovim_fixtures import folder, kind

__all__ = ["folder", "kind"]

FRAME_MS = 16

# Wraps the functions that Neovim calls, and notes how long they take: before a buffer is attached, so that the
# wrapped ones are called.
MEASURE = """
took = {}
local now = vim.loop.hrtime
local function note(name, began)
  took[name] = took[name] or {}
  table.insert(took[name], (now() - began) / 1e6)
end
local function measure(module, name)
  local table_ = require(module)
  local original = table_[name]
  table_[name] = function(...)
    local began = now()
    local results = { original(...) }
    note(module .. '.' .. name, began)
    return unpack(results)
  end
end
measure('codespec.ghost_text', 'changed')
measure('codespec.native', 'changed')
measure('codespec.engine', 'answer')
measure('codespec.engine', 'keep')
measure('codespec.engine', 'accept')
measure('codespec.engine', 'attach')
measure('codespec.launch', 'load_some')
measure('codespec.server', 'attach')
measure('codespec.server', 'start')
measure('codespec.keys', 'map')
measure('codespec', 'statusline')

local pressed
vim.api.nvim_create_autocmd('InsertCharPre', { callback = function() pressed = now() end })
function late()
  vim.api.nvim_create_autocmd('TextChangedI', { callback = function()
    if pressed then
      note('a whole key, with what Neovim itself does', pressed)
      pressed = nil
    end
  end })
end
"""


def test_no_handler_takes_longer_than_a_frame(kind, folder, capsys):
    text = "".join(f"value_{number} = compute({number}, 'some text')\n" for number in range(10_000))
    with editing(kind, folder, STUB, text, after=MEASURE) as editor:
        editor.wait_until_ready()
        editor.lua("late()")
        editor.type("5000GA")
        for word in range(5):
            for key in f" # {word} abcdefgh":
                line = editor.line() + key
                editor.write(key)
                editor.wait(lambda line=line: editor.line() == line)
            editor.wait_for_ghost()
            editor.type("<M-Right>")
            editor.lua("for _ = 1, 20 do require('codespec').statusline() end")
        took = editor.lua("return took")
    with capsys.disabled():
        print(f"\nNeovim {kind.name}, 10,000 lines, milliseconds:")
        for name, times in sorted(took.items()):
            print(f"  {name}: {len(times)} times, median {median(times):.3f}, longest {max(times):.3f}")
    assert len(took) >= 8
    # The machine may do anything else meanwhile, and a server is started only once: the figures above say more.
    assert {name for name, times in took.items() if median(times) > FRAME_MS} <= {"codespec.server.start"}
