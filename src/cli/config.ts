import type { Command } from 'commander'
import type { Settings } from '../server/config/settings.ts'
import { exitCodes } from './failure.ts'
import { type ConfigFlags, saidOf, withConfig } from './given.ts'
import { aligned, say } from './say.ts'

type Flags = ConfigFlags & { readonly json?: boolean }

const help = `
Both take the flags of threadkeep serve and look where it would: print tells every value that would hold and where it comes
from, with *** in the place of secrets; check says whether all of it is in order.

Examples:
  threadkeep config print
  threadkeep config print --port 8080 --json
  threadkeep config check --config threadkeep.config.json

${exitCodes} A configuration with a mistake counts as wrong usage.`

/** The commands that show and check the configuration of the server. */
export function addConfig(program: Command): void {
  const config = program
    .command('config')
    .description('show or check the configuration of the server')
    .addHelpText('after', help)
  withConfig(config.command('print'))
    .description('print what would hold, and where each value comes from')
    .option('--json', 'answer in JSON')
    .addHelpText('after', help)
    .action(print)
  withConfig(config.command('check'))
    .description('say whether it is in order')
    .option('--json', 'answer in JSON')
    .addHelpText('after', help)
    .action(checkIt)
}

async function print(flags: Flags): Promise<void> {
  const { shownSettings } = await import('../server/config/shown.ts')
  const settings = await checked(flags)
  const shown = [...shownSettings(settings)]
  const rows = shown.map(([field, { value, from, name }]) => [
    field,
    name ?? (from === 'file' ? (settings.file ?? from) : from),
    JSON.stringify(value),
  ])
  say(flags.json, { file: settings.file ?? null, settings: Object.fromEntries(shown) }, aligned(rows))
}

async function checkIt(flags: Flags): Promise<void> {
  const { file = null, ways } = await checked(flags)
  const [profile, templates] = [ways.session?.name ?? null, Object.keys(ways.templates)]
  const about = `profile ${profile ?? 'none: sessions are not remembered'}, templates ${templates.length === 0 ? 'none' : templates.join(', ')}`
  say(flags.json, { ok: true, file, profile, templates }, [`${file ?? 'The configuration'} is in order: ${about}.`])
}

/** Settings in which nothing is wrong. */
async function checked(flags: Flags): Promise<Settings> {
  const said = await saidOf(flags, process.env)
  const [{ loadSettings }, { planOf }] = await Promise.all([
    import('../server/config/load.ts'),
    import('../server/config/plan.ts'),
  ])
  const { settings } = await loadSettings(said)
  planOf(settings, process.env)
  return settings
}
