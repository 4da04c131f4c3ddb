-- Inline completion from `codespec serve`: see :help codespec.

local M = {}

local api = vim.api

local options

local function concerns(buffer)
  local types = options.filetypes
  return vim.bo[buffer].buftype == ''
    and vim.bo[buffer].modifiable
    and api.nvim_buf_get_name(buffer) ~= ''
    and (vim.tbl_contains(types, '*') or vim.tbl_contains(types, vim.bo[buffer].filetype))
end

local function is_too_large(buffer)
  return api.nvim_buf_get_offset(buffer, api.nvim_buf_line_count(buffer)) > options.max_file_kib * 1024
end

local function attach(buffer)
  if not concerns(buffer) then
    return
  end
  if is_too_large(buffer) then
    require('codespec.tell').log(('%s is larger than max_file_kib'):format(api.nvim_buf_get_name(buffer)))
    return
  end
  require('codespec.server').attach(buffer)
end

-- Complete in files of the chosen types; `user` goes over the defaults, key by key (:help codespec-options).
function M.setup(user)
  local tell = require('codespec.tell')
  if vim.fn.has('nvim-0.7.2') == 0 then
    tell.fail('Neovim 0.7.2 or newer is needed')
    return
  end
  local messages
  options, messages = require('codespec.options').read(user)
  if #messages > 0 then
    tell.warn(table.concat(messages, '; ') .. ' (:help codespec-options)')
  end
  require('codespec.engine').setup(options)
  require('codespec.server').setup(options, function(client, buffer)
    require('codespec.engine').attach(client, buffer)
    require('codespec.keys').map(buffer, options.keys)
  end)
  api.nvim_create_autocmd('FileType', {
    group = api.nvim_create_augroup('codespec', { clear = true }),
    callback = function(event)
      attach(event.buf)
    end,
  })
  for _, buffer in ipairs(api.nvim_list_bufs()) do
    if api.nvim_buf_is_loaded(buffer) then
      attach(buffer)
    end
  end
end

-- The options in force; nil before setup.
function M.options()
  return options
end

-- What is known of completion in a buffer, the current one by default: `state` and, as far as the server has told,
-- `target`, `draft`, `grammar`, `language`, `acceptance` …; nil where codespec has no part in it.
function M.status(buffer)
  buffer = (buffer == nil or buffer == 0) and api.nvim_get_current_buf() or buffer
  local session = options and require('codespec.server').session(buffer)
  if not session then
    return nil
  end
  local status = vim.tbl_extend('keep', { state = session.state }, session.status or {})
  local drafts = type(status.drafts) == 'table' and status.drafts or {}
  status.draft = drafts[require('codespec.server').language(vim.bo[buffer].filetype)] or status.draft
  status.percent = session.percent
  status.paused = require('codespec.pause').reason(buffer)
  return status
end

-- What codespec does, or why nothing is shown, in a few words, for 'statusline'; empty where it has no part in the buffer.
function M.statusline()
  local status = M.status()
  if not status then
    return ''
  end
  local words = status.paused and 'paused' or status.state
  -- No per cent signs, which mean something in 'statusline'.
  if status.state == 'loading' and status.percent then
    words = ('loading %d/100'):format(status.percent)
  elseif not status.paused and type(status.reading) == 'number' then
    words = ('reading %d/100'):format(status.reading)
  elseif not status.paused and status.state == 'busy' then
    words = 'writing'
  elseif not status.paused and status.state == 'ready' and type(status.nothing) == 'table' then
    words = status.nothing.short
  end
  return 'codespec: ' .. words
end

local function engine()
  return options and require('codespec.engine')
end

-- Insert what is shown, all of it; whether there was something. Not from <expr> mappings, which may not change text.
function M.accept()
  return engine() and engine().accept('all') or false
end

-- The same for the next word, with the space before it.
function M.accept_word()
  return engine() and engine().accept('word') or false
end

-- The same up to the end of the line.
function M.accept_line()
  return engine() and engine().accept('line') or false
end

-- Show another completion, which is asked for if need be; whether one was shown.
function M.next()
  return engine() and engine().cycle(1) or false
end

function M.previous()
  return engine() and engine().cycle(-1) or false
end

-- Hide what is shown until the text changes; whether there was something.
function M.dismiss()
  return engine() and engine().dismiss() or false
end

-- Ask for completions now, whatever auto_trigger says.
function M.trigger()
  if engine() then
    engine().trigger()
  end
end

local function edits()
  return options and require('codespec.next_edit')
end

-- Ask for the next edit: the change that follows from those just made.
function M.next_edit()
  if edits() then
    edits().next()
  end
end

-- Go to the edit that is shown or, where the cursor is there, apply it; whether there was one.
function M.apply_edit()
  return edits() and edits().jump_or_apply() or false
end

-- Hide the edit that is shown, and have it not offered again; whether there was one.
function M.drop_edit()
  return edits() and edits().drop() or false
end

-- Whether an edit is shown, or a hint at one.
function M.is_edit_visible()
  return edits() and edits().is_shown() or false
end

-- Whether a completion is shown that fits what is typed.
function M.is_visible()
  return engine() and engine().remainder() ~= nil or false
end

return M
