-- Where completion is paused: in a buffer, for a language, everywhere.

local M = {}

local everywhere = false
local languages = {}
local buffers = {}
local changes = 0 -- to `everywhere`: a snooze after which there was another one ends nothing

local function language_of(buffer)
  return require('codespec.server').language(vim.bo[buffer].filetype)
end

-- Why a buffer is not completed now; nil where it is.
function M.reason(buffer)
  return everywhere and 'all' or languages[language_of(buffer)] and 'language' or buffers[buffer] and 'buffer' or nil
end

-- What the server is to know, so that it does not work ahead for nothing.
function M.settings()
  local settings = {}
  if everywhere then
    settings.enabled = false
  end
  for language in pairs(languages) do
    settings.language = settings.language or {}
    settings.language[language] = { enabled = false }
  end
  return settings
end

-- Pause or go on: `buffer`, `language` (that of the buffer) or `all`.
function M.set(scope, buffer, paused)
  local value = paused or nil
  if scope == 'all' then
    everywhere = paused
    changes = changes + 1
    if not paused then
      languages, buffers = {}, {}
    end
  elseif scope == 'language' then
    languages[language_of(buffer)] = value
  else
    buffers[buffer] = value
  end
  if scope ~= 'buffer' then
    require('codespec.server').push_settings()
  end
end

-- Pause everywhere for some minutes, then go on and call `done`.
function M.snooze(minutes, done)
  M.set('all', 0, true)
  local own = changes
  vim.defer_fn(function()
    if own == changes then
      everywhere = false
      require('codespec.server').push_settings()
      done()
    end
  end, math.floor(minutes * 60000))
end

return M
