-- Asks for completions while the user types, and draws them: where Neovim does not do that itself.

local draw = require('codespec.draw')

local M = {}

local api = vim.api
local uv = vim.uv or vim.loop

local timer = uv.new_timer()
local options
local engine
local server
local latest = 0 -- number of the newest request; an answer to an older one does not count
local pending -- { client = id, request = id }
local dismissed -- the place where the user does not want a completion

-- Nobody wants the answer to the request any more.
function M.forget_request()
  timer:stop()
  latest = latest + 1
  local client = pending and vim.lsp.get_client_by_id(pending.client)
  if client then
    server.call(client, 'cancel_request', pending.request)
  end
  pending = nil
end

local function request()
  local buffer = api.nvim_get_current_buf()
  local client = engine.client(buffer)
  if not client or not engine.may_show() then
    return
  end
  local number, place = latest, engine.place()
  if vim.deep_equal(place, dismissed) then
    return
  end
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  params.context = { triggerKind = engine.AUTOMATIC }
  local began = uv.hrtime()
  local sent, id = server.call(client, 'request', engine.METHOD, params, vim.schedule_wrap(function(err, result)
    if number ~= latest then
      return
    end
    pending = nil
    if not err and not engine.is_stale(place) then
      engine.answer(result, client.offset_encoding, began)
      engine.keep()
    end
  end), buffer)
  pending = sent and { client = client.id, request = id } or nil
end

-- The text or the cursor has changed: keep what still fits, and ask again when the keyboard rests.
function M.changed()
  M.forget_request()
  engine.keep()
  if options.auto_trigger then
    timer:start(options.debounce_ms, 0, vim.schedule_wrap(request))
  end
end

function M.leave()
  M.forget_request()
end

function M.dismissed(place)
  M.forget_request()
  dismissed = place
end

function M.show(shown, text, hint)
  draw.draw(text, shown.after, hint)
end

function M.hide(shown)
  draw.clear(shown.buffer)
end

function M.sync() end -- what is drawn is what was chosen

function M.attach() end

function M.detach() end

function M.command(start)
  return start
end

function M.setup(chosen)
  options = chosen
  engine = require('codespec.engine')
  server = require('codespec.server')
  draw.define_highlights()
  api.nvim_create_autocmd('ColorScheme', {
    group = api.nvim_create_augroup('codespec.ghost_text', { clear = true }),
    callback = draw.define_highlights,
  })
end

return M
