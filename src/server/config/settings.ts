import { isObject, maskStoreUrl } from '../../domain/error.ts'
import type { Profile } from '../../domain/profile.ts'
import { defaultStoreFile } from '../../stores/open.ts'
import { normalizeSecrets } from '../../text/secrets.ts'
import type { ProfileConfig } from '../memoryRegistry.ts'
import { findConfigFile, readConfig, readConfigText } from './configFile.ts'
import { type CompleteConfig, defaults } from './defaults.ts'
import { resolveProfiles } from './profileConfig.ts'
import { type Config, configSchema, sections } from './schema.ts'

/** Origin of a value, in order of precedence. */
export type SettingOrigin = 'flag' | 'environment' | 'file' | 'default'

/** A value and its origin; `name` is the flag or the variable. */
export type Setting = { readonly value: unknown; readonly from: SettingOrigin; readonly name?: string | undefined }

/** The values of one source by field, such as `listen.port`. */
export type ConfigSource = ReadonlyMap<string, Setting>

/** The merged configuration. */
export type Settings = {
  /** Path of the configuration file, if there is one. */
  readonly file: string | undefined
  /** Every value with its origin. */
  readonly values: ConfigSource
  readonly config: CompleteConfig & { readonly store: string }
  readonly profiles: ProfileConfig
}

/** Sources of the configuration: the file, and those that take precedence over it, highest first. */
export type ConfigInput = { readonly file: string | undefined; readonly sources: readonly ConfigSource[] }

/** Settings, and the text of the file they were read from. */
export type LoadedSettings = { readonly settings: Settings; readonly text: string | undefined }

/**
 * Loads the configuration file (the given one, else the one in the current folder, if any) and merges the other
 * sources.
 *
 * @example
 * const { settings } = await loadSettings({ file: undefined, sources: [flags, environment] })
 */
export async function loadSettings({ file: givenFile, sources }: ConfigInput): Promise<LoadedSettings> {
  const file = givenFile ?? findConfigFile()
  if (file === undefined) return { settings: mergeSettings(sources, undefined), text: undefined }
  const text = readConfigText(file)
  return { settings: mergeSettings([...sources, toConfigSource(await readConfig(file, text), 'file')], file), text }
}

/** All fields, in the order in which they are listed to users. */
const fields: readonly string[] = Object.keys(configSchema.shape).flatMap((name) => {
  const section = Object.hasOwn(sections, name) ? sections[name as keyof typeof sections] : undefined
  return section === undefined ? [name] : Object.keys(section.shape).map((inner) => `${name}.${inner}`)
})

/** Converts a configuration to a source. */
export const toConfigSource = (config: Config, from: SettingOrigin): ConfigSource =>
  new Map(
    fields.flatMap((field) => {
      const value = readField(config, field)
      return value === undefined ? [] : [[field, { value, from }] as const]
    }),
  )

/**
 * Merges sources, highest precedence first, and adds defaults.
 *
 * @example
 * mergeSettings([flags, environment, toConfigSource(parseConfig(json), 'file')], 'threadkeep.config.json').config.listen.port
 */
export function mergeSettings(sources: readonly ConfigSource[], file: string | undefined): Settings {
  const all = [...sources, toConfigSource(defaults, 'default')]
  const values = new Map(
    fields.flatMap((field) => {
      const found = all.find((source) => source.has(field))?.get(field)
      return found === undefined ? [] : [[field, found] as const]
    }),
  )
  const profiles = resolveProfiles(toConfig(values))
  const filled = new Map([...dependentDefaults(profiles, values), ...values])
  const ordered = new Map(
    fields.flatMap((field) => (filled.has(field) ? [[field, filled.get(field) as Setting] as const] : [])),
  )
  return { file, values: ordered, config: toConfig(ordered) as Settings['config'], profiles }
}

/** Defaults that depend on the profiles. */
function dependentDefaults(
  profiles: ProfileConfig,
  values: ConfigSource,
): readonly (readonly [field: string, setting: Setting])[] {
  const { scope } = profiles
  const byDefault = (value: unknown): Setting => ({ value, from: 'default' })
  return [
    ['store', byDefault(needsDurableStore(profiles, values) ? `sqlite:${defaultStoreFile}` : 'ram:')],
    ['tenantProfile', byDefault(scope.name)],
  ]
}

/** True when a profile in use stores anything outside RAM. A default tenant profile does not count. */
export function needsDurableStore({ scope, session, templates }: ProfileConfig, values: ConfigSource): boolean {
  const isTenantProfileSet = (values.get('tenantProfile')?.from ?? 'default') !== 'default'
  const used = [
    session ?? scope,
    ...(isTenantProfileSet ? [scope] : []),
    ...Object.values(templates).map(({ profile }) => profile),
  ]
  return used.some(isDurable)
}

const isDurable = ({ durability, scopes }: Profile): boolean => durability === 'durable' || scopes.includes('scope')

/** Converts a source back to a configuration. */
export function toConfig(values: ConfigSource): Config {
  const config: Record<string, unknown> = {}
  for (const [field, { value }] of values) {
    const [name = '', inner] = field.split('.')
    config[name] = inner === undefined ? value : { ...(config[name] as object | undefined), [inner]: value }
  }
  return config as Config
}

function readField(config: Config, field: string): unknown {
  const [name = '', inner] = field.split('.')
  const value = (config as Readonly<Record<string, unknown>>)[name]
  return inner === undefined ? value : (value as Readonly<Record<string, unknown>> | undefined)?.[inner]
}

const redacted = '***'

/** Every value with its origin, without secrets. */
export const redactSettings = ({ values }: Settings): ReadonlyMap<string, Setting> =>
  new Map([...values].map(([field, setting]) => [field, { ...setting, value: redact(setting.value, field) }]))

/** Replaces keys, secrets, and the passwords and queries of URLs, and masks what looks like a secret elsewhere. */
function redact(value: unknown, name = ''): unknown {
  if (typeof value === 'string') {
    if (name === 'key' || name === 'secret') return redacted
    const isStoreUrl = name === 'store' || name === 'sessions'
    return isStoreUrl ? maskStoreUrl(normalizeSecrets(value), redacted) : redactUrl(normalizeSecrets(value))
  }
  if (Array.isArray(value)) return value.map((item) => redact(item))
  if (!isObject(value)) return value
  // Variables and headers of another program may all be secret.
  if (name === 'env' || name === 'headers')
    return Object.fromEntries(Object.keys(value).map((field) => [field, redacted]))
  return Object.fromEntries(Object.entries(value).map(([field, inner]) => [field, redact(inner, field)]))
}

/** Some services take a key in the query, so all of it is replaced. */
const redactUrl = (text: string): string =>
  /^[a-z][a-z0-9+.-]*:\/\//i.test(text)
    ? text.replace(/\/\/[^@/?]*@/, `//${redacted}@`).replace(/\?.*/s, `?${redacted}`)
    : text
