import type { Command } from 'commander'
import type { Settings } from '../server/config/settings.ts'
import { addConfigOptions, type ConfigFlags, readConfigSources } from './configOptions.ts'
import { type Environment, jsonOption } from './options.ts'
import { setHelp } from './terminal/help.ts'
import { printNote, printResult } from './terminal/output.ts'
import { formatTable } from './terminal/table.ts'

type Flags = ConfigFlags & { readonly json?: boolean }

const details = [
  'Takes the flags of threadkeep serve and reads the same files. Precedence: flags, environment, file. Unknown fields are errors. A variable that holds a key may be missing: you are told which one.',
]
const exitNote = 'An invalid configuration is a usage error.'

export function addConfigCommand(program: Command): void {
  const config = setHelp(program.command('config').description('print or check the configuration of the server'), {
    details,
    examples: ['threadkeep config print', 'threadkeep config check --config threadkeep.config.json'],
    exitNote,
  })
  setHelp(
    addConfigOptions(config.command('print'))
      .description('print every effective setting and its source, with secrets as ***')
      .addOption(jsonOption())
      .action(printSettings),
    {
      details,
      examples: ['threadkeep config print', 'threadkeep config print --port 8080 --json'],
      exitNote,
    },
  )
  setHelp(
    addConfigOptions(config.command('check'))
      .description('check the configuration')
      .addOption(jsonOption())
      .action(checkSettings),
    {
      details,
      examples: ['threadkeep config check', 'threadkeep config check --config threadkeep.config.json'],
      exitNote,
    },
  )
}

async function printSettings(flags: Flags): Promise<void> {
  const { redactSettings } = await import('../server/config/settings.ts')
  const settings = await loadValidSettings(flags)
  const shown = [...redactSettings(settings)]
  const rows = shown.map(([field, { value, from, name }]) => [
    field,
    name ?? (from === 'file' ? (settings.file ?? from) : from),
    JSON.stringify(value),
  ])
  printResult(flags.json, { file: settings.file ?? null, settings: Object.fromEntries(shown) }, formatTable(rows))
}

async function checkSettings(flags: Flags): Promise<void> {
  const settings = await loadValidSettings(flags)
  const { file = null, profiles, config } = settings
  const [profile, templates] = [profiles.session?.name ?? null, Object.keys(profiles.templates)]
  const unset = findUnsetVariables(config, process.env)
  const details = `profile ${profile ?? 'none (session memory is off)'}, templates ${templates.length === 0 ? 'none' : templates.join(', ')}${config.embedder === undefined ? '' : `, embedder ${config.embedder}`}`
  const value = { ok: true, file, profile, templates, embedder: config.embedder ?? null, unsetVariables: unset }
  printResult(flags.json, value, [`${file ?? 'The configuration'} is valid: ${details}.`])
  if (flags.json !== true)
    printNote(...unset.map((name) => `warning: ${name} is not set. Set it before you start the server.`))
}

/** Loads the settings. Throws when one is invalid. */
async function loadValidSettings(flags: Flags): Promise<Settings> {
  const sources = await readConfigSources(flags, process.env)
  const [{ loadSettings }, { resolveServerConfig }] = await Promise.all([
    import('../server/config/settings.ts'),
    import('../server/config/serverConfig.ts'),
  ])
  const { settings } = await loadSettings(sources)
  const unset = findUnsetVariables(settings.config, process.env)
  const placeholders = Object.fromEntries(unset.map((name) => [name, 'x'.repeat(32)]))
  resolveServerConfig(settings, { ...process.env, ...placeholders })
  return settings
}

/** Names of the variables for keys and secrets that the configuration refers to and that are not set. */
function findUnsetVariables({ upstreams, webhook }: Settings['config'], environment: Environment): readonly string[] {
  const names = [...upstreams.map(({ keyEnv }) => keyEnv), webhook?.secretEnv]
  return [
    ...new Set(names.filter((name) => name !== undefined && (environment[name]?.trim() ?? '') === '')),
  ] as string[]
}
