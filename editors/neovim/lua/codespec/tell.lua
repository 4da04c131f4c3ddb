-- What the user is told, and the log that `:Codespec log` shows.

local M = {}

local MOST = 500
local NAMES = { [vim.log.levels.ERROR] = 'error', [vim.log.levels.WARN] = 'warning', [vim.log.levels.INFO] = 'info' }

local lines = {}

-- Keep a line for `:Codespec log`.
function M.log(text, level)
  local stamp = os.date('%H:%M:%S') .. ' ' .. (NAMES[level] or 'log')
  for _, line in ipairs(vim.split(text, '\n', { plain = true })) do
    table.insert(lines, stamp .. ': ' .. line)
    if #lines > MOST then
      table.remove(lines, 1)
    end
  end
end

function M.logged()
  return lines
end

-- A message that does not make Neovim ask for Enter while the user types.
local function fit(text)
  local room = vim.o.columns * math.max(vim.o.cmdheight, 1) - 13 -- of which Neovim keeps some to itself
  if vim.api.nvim_get_mode().mode:sub(1, 1) ~= 'i' or (vim.fn.strdisplaywidth(text) <= room and not text:find('\n')) then
    return text
  end
  local pointer = ' … :Codespec log'
  return vim.fn.strcharpart(text:match('^[^\n]*'), 0, room - #pointer) .. pointer
end

-- Show a message, from anywhere.
function M.notify(text, level)
  level = level or vim.log.levels.INFO
  M.log(text, level)
  vim.schedule(function()
    -- Behind another message it would make the user press Enter.
    vim.cmd('redraw')
    vim.notify(fit('codespec: ' .. text), level)
  end)
end

function M.warn(text)
  M.notify(text, vim.log.levels.WARN)
end

function M.fail(text)
  M.notify(text, vim.log.levels.ERROR)
end

-- A window with text that is not the user's, at the bottom; `q` closes it. Returns its buffer.
function M.show(name, text)
  local uri = 'codespec://' .. name
  local buffer = vim.fn.bufnr('^' .. uri .. '$')
  if buffer == -1 then
    buffer = vim.api.nvim_create_buf(false, true)
    vim.api.nvim_buf_set_name(buffer, uri)
    vim.bo[buffer].bufhidden = 'wipe'
    vim.keymap.set('n', 'q', '<Cmd>close<CR>', { buffer = buffer, nowait = true, desc = 'codespec: close' })
  end
  if vim.fn.bufwinid(buffer) == -1 then
    vim.cmd('botright ' .. math.max(3, math.min(#text + 1, math.floor(vim.o.lines / 2))) .. 'split')
    vim.api.nvim_win_set_buf(0, buffer)
  end
  vim.bo[buffer].modifiable = true
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, text)
  vim.bo[buffer].modifiable = false
  return buffer
end

return M
