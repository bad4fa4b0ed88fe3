import type { Command } from 'commander'
import type { Settings } from '../server/config/settings.ts'
import { addConfigOptions, type ConfigFlags, readConfigSources } from './configOptions.ts'
import { exitCodesHelp } from './errors.ts'
import { formatTable, printResult } from './output.ts'

type Flags = ConfigFlags & { readonly json?: boolean }

const help = `
Both commands take the flags of threadkeep serve and read the same files. print shows every effective setting and its
source, with secrets as ***. check validates the configuration.
Precedence: flags, environment, file. Unknown fields are errors.

Examples:
  threadkeep config print
  threadkeep config print --port 8080 --json
  threadkeep config check --config threadkeep.config.json

${exitCodesHelp} An invalid configuration is a usage error.`

export function addConfigCommand(program: Command): void {
  const config = program
    .command('config')
    .description('print or check the configuration of the server')
    .addHelpText('after', help)
  addConfigOptions(config.command('print'))
    .description('print every effective setting and its source')
    .option('--json', 'print JSON')
    .addHelpText('after', help)
    .action(printSettings)
  addConfigOptions(config.command('check'))
    .description('check the configuration')
    .option('--json', 'print JSON')
    .addHelpText('after', help)
    .action(checkSettings)
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
  const { file = null, profiles, config } = await loadValidSettings(flags)
  const [profile, templates] = [profiles.session?.name ?? null, Object.keys(profiles.templates)]
  const details = `profile ${profile ?? 'none (session memory is off)'}, templates ${templates.length === 0 ? 'none' : templates.join(', ')}${config.embedder === undefined ? '' : `, embedder ${config.embedder}`}`
  printResult(flags.json, { ok: true, file, profile, templates, embedder: config.embedder ?? null }, [
    `${file ?? 'The configuration'} is valid: ${details}.`,
  ])
}

/** Loads the settings. Throws when one is invalid. */
async function loadValidSettings(flags: Flags): Promise<Settings> {
  const sources = await readConfigSources(flags, process.env)
  const [{ loadSettings }, { resolveServerConfig }] = await Promise.all([
    import('../server/config/settings.ts'),
    import('../server/config/serverConfig.ts'),
  ])
  const { settings } = await loadSettings(sources)
  resolveServerConfig(settings, process.env)
  return settings
}
