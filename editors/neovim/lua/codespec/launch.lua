-- Starting programs: what `vim.lsp` needs for it, and what is to be learnt from one that ends at once.

local M = {}

-- What `vim.lsp` loads when the first server is started.
local modules = { 'vim.lsp', 'vim.lsp.rpc', 'vim.lsp.client', 'vim.lsp.handlers', 'vim.lsp.inline_completion' }

-- Load one of Neovim's own modules, if it has that; whether there are more. All at once take longer than a frame.
function M.load_some()
  pcall(require, table.remove(modules, 1))
  return #modules > 0
end

-- Start a client without a buffer; its id.
function M.client(config)
  if vim.fn.has('nvim-0.11') == 1 then
    local function never()
      return false
    end
    return vim.lsp.start(config, { attach = false, reuse_client = never, silent = true })
  end
  return vim.lsp.start_client(config)
end

-- Run a program once more without input; `done` is called with the last line that it says, nil for none.
function M.last_words(command, done)
  local last
  local job = vim.fn.jobstart(command, {
    stderr_buffered = true,
    on_stderr = function(_, lines)
      for _, line in ipairs(lines) do
        last = vim.trim(line) ~= '' and vim.trim(line) or last
      end
    end,
    on_exit = function()
      done(last)
    end,
  })
  if job > 0 then
    vim.fn.chanclose(job, 'stdin')
  end
end

return M
