import { hash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { MemoryError } from '../../domain/error.ts'
import { type Config, parseConfig } from './schema.ts'

/** Where a configuration is looked for in the current folder. */
const names = ['json', 'ts', 'mjs', 'js'].map((ending) => `threadkeep.config.${ending}`)

/** The configuration in the current folder, if there is one. */
export const foundFile = (): string | undefined => names.find((name) => existsSync(name))

/** The text of a configuration file: when it is the same again, so is what it says. */
export function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    throw unreadable(file, 'it cannot be opened. Name a file that is there', cause)
  }
}

/** Reads a configuration: JSON, or a module whose default export it is. Paths in it begin where the file is. */
export async function readConfig(file: string, text: string = readText(file)): Promise<Config> {
  const value = file.endsWith('.json') ? jsonIn(file, text) : await exported(file, text)
  try {
    return besideFile(parseConfig(value), file)
  } catch (error) {
    if (!(error instanceof MemoryError)) throw error
    throw new MemoryError(error.code, `${file}: ${error.message}`, { param: error.param ?? 'config', cause: error })
  }
}

function jsonIn(file: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    // The platform's own message would quote the file, which may hold keys.
    const line = lineOf(text, cause)
    throw unreadable(
      file,
      `it is not JSON${line === undefined ? '' : ` from line ${line} on`}. Mind commas and quotes`,
      cause,
    )
  }
}

const lineOf = (text: string, error: unknown): number | undefined => {
  const place = /position (\d+)/.exec(error instanceof Error ? error.message : '')?.[1]
  return place === undefined ? undefined : text.slice(0, Number(place)).split('\n').length
}

async function exported(file: string, text: string): Promise<unknown> {
  // Under the same address the platform would give the module it has loaded before.
  const url = `${pathToFileURL(resolve(file)).href}?${hash('sha256', text).slice(0, 16)}`
  const module = await import(url).catch((cause: unknown) => {
    throw unreadable(
      file,
      `it cannot be loaded (${cause instanceof Error ? cause.name : 'unknown fault'}). Run it with node to see why`,
      cause,
    )
  })
  if ((module as { default?: unknown }).default !== undefined) return module.default
  throw unreadable(file, 'it has no default export. Write export default { … }')
}

const unreadable = (file: string, why: string, cause?: unknown): MemoryError =>
  new MemoryError('bad-option', `The configuration ${file} cannot be used: ${why}.`, { param: 'config', cause })

function besideFile(config: Config, file: string): Config {
  const { store, storeKey, keys, prices, mcp } = config
  return {
    ...config,
    ...(store === undefined ? {} : { store: located(store, /^sqlite:(?=.)/, file) }),
    ...(storeKey === undefined ? {} : { storeKey: located(storeKey, /^file:(?=.)/, file) }),
    ...(keys?.file === undefined ? {} : { keys: { ...keys, file: located(keys.file, /^/, file) } }),
    ...(typeof prices === 'string' ? { prices: located(prices, /^/, file) } : {}),
    ...(mcp === undefined ? {} : { mcp: mcpBeside(mcp, file) }),
  }
}

function mcpBeside(mcp: NonNullable<Config['mcp']>, file: string): NonNullable<Config['mcp']> {
  const all = (paths: readonly string[]): string[] => paths.map((path) => located(path, /^/, file))
  const { allow, users, audit } = mcp
  return {
    ...mcp,
    ...(allow === undefined ? {} : { allow: all(allow) }),
    ...(users === undefined
      ? {}
      : { users: Object.fromEntries(Object.entries(users).map(([name, paths]) => [name, all(paths)])) }),
    ...(audit === undefined ? {} : { audit: located(audit, /^/, file) }),
  }
}

/** A path after its scheme, as it is written if it leads to the same place from the current folder. */
function located(text: string, scheme: RegExp, file: string): string {
  const [start] = scheme.exec(text) ?? []
  if (start === undefined) return text
  const path = text.slice(start.length)
  return isAbsolute(path) || resolve(dirname(file)) === resolve('.') ? text : start + join(dirname(file), path)
}
