import type { Profile } from '../../domain/profile.ts'
import { defaultFile } from '../../stores/open.ts'
import type { Ways } from '../memoryRegistry.ts'
import { type Complete, defaults } from './defaults.ts'
import { type Config, sections, config as shape } from './schema.ts'
import { waysOf } from './ways.ts'

/** Who has the last word: a flag, then the environment, then the file. */
export type From = 'flag' | 'environment' | 'file' | 'default'

/** One value and where it comes from; `name` is the flag or the variable. */
export type Setting = { readonly value: unknown; readonly from: From; readonly name?: string | undefined }

/** What one source says, field by field: `listen.port` and so on. */
export type Given = ReadonlyMap<string, Setting>

/** Everything that holds. */
export type Settings = {
  readonly file: string | undefined
  readonly given: Given
  readonly config: Complete & { readonly store: string }
  readonly ways: Ways
}

/** Every field that can be set, in the order in which people read them. */
const fields: readonly string[] = Object.keys(shape.shape).flatMap((name) => {
  const section = Object.hasOwn(sections, name) ? sections[name as keyof typeof sections] : undefined
  return section === undefined ? [name] : Object.keys(section.shape).map((inner) => `${name}.${inner}`)
})

/** The fields that a configuration sets. */
export const givenIn = (config: Config, from: From): Given =>
  new Map(
    fields.flatMap((field) => {
      const value = valueIn(config, field)
      return value === undefined ? [] : [[field, { value, from }] as const]
    }),
  )

/**
 * What holds when several sources speak, those that count more first; whatever none of them says has its default.
 *
 * @example
 * settle([flags, environment, givenIn(parseConfig(json), 'file')], 'threadkeep.config.json').config.listen.port
 */
export function settle(sources: readonly Given[], file: string | undefined): Settings {
  const all = [...sources, givenIn(defaults, 'default')]
  const given = new Map(
    fields.flatMap((field) => {
      const found = all.find((source) => source.has(field))?.get(field)
      return found === undefined ? [] : [[field, found] as const]
    }),
  )
  const ways = waysOf(configOf(given))
  const filled = new Map([...depending(ways, given), ...given])
  const inOrder = new Map(
    fields.flatMap((field) => (filled.has(field) ? [[field, filled.get(field) as Setting] as const] : [])),
  )
  return { file, given: inOrder, config: configOf(inOrder) as Settings['config'], ways }
}

/** Defaults that depend on what was said. */
function depending(ways: Ways, given: Given): readonly (readonly [field: string, setting: Setting])[] {
  const { scope, session } = ways
  const byDefault = (value: unknown): Setting => ({ value, from: 'default' })
  return [
    ['store', byDefault(needsFile(ways, given) ? `sqlite:${defaultFile}` : 'ram:')],
    ['budget', byDefault((session ?? scope).budget)],
    ['tenantProfile', byDefault(scope.name)],
  ]
}

/** Whether anything would be kept in a file: a server that keeps everything in RAM gets none. */
export function needsFile({ scope, session, templates }: Ways, given: Given): boolean {
  const isChosen = (given.get('tenantProfile')?.from ?? 'default') !== 'default'
  const used = [
    session ?? scope,
    ...(isChosen ? [scope] : []),
    ...Object.values(templates).map(({ profile }) => profile),
  ]
  return used.some(leavesRam)
}

const leavesRam = ({ durability, sees }: Profile): boolean => durability === 'durable' || sees.includes('scope')

/** The configuration that these fields make. */
export function configOf(given: Given): Config {
  const whole: Record<string, unknown> = {}
  for (const [field, { value }] of given) {
    const [name = '', inner] = field.split('.')
    whole[name] = inner === undefined ? value : { ...(whole[name] as object | undefined), [inner]: value }
  }
  return whole as Config
}

function valueIn(config: Config, field: string): unknown {
  const [name = '', inner] = field.split('.')
  const value = (config as Readonly<Record<string, unknown>>)[name]
  return inner === undefined ? value : (value as Readonly<Record<string, unknown>> | undefined)?.[inner]
}
