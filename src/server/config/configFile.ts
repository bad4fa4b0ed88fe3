import { hash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { MemoryError } from '../../domain/error.ts'
import { type Config, parseConfig } from './schema.ts'

/** File names that are looked for in the current folder. */
const fileNames = ['json', 'ts', 'mjs', 'js'].map((extension) => `threadkeep.config.${extension}`)

/** The configuration file in the current folder, if there is one. */
export const findConfigFile = (): string | undefined => fileNames.find((name) => existsSync(name))

export function readConfigText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    throw unusableFile(file, 'it cannot be opened. Check the path and permissions', cause)
  }
}

/**
 * Reads a configuration file: JSON, or a module with a default export. Relative paths in it are resolved from its
 * folder.
 *
 * @throws {MemoryError} `bad-option` for a file that cannot be read or is invalid.
 */
export async function readConfig(file: string, text: string = readConfigText(file)): Promise<Config> {
  const value = file.endsWith('.json') ? parseJsonFile(file, text) : await importDefault(file, text)
  try {
    return resolvePaths(parseConfig(value), file)
  } catch (error) {
    if (!(error instanceof MemoryError)) throw error
    throw new MemoryError(error.code, `${file}: ${error.message}`, { param: error.param ?? 'config', cause: error })
  }
}

function parseJsonFile(file: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    // The platform's own message would quote the file, which may contain keys.
    const line = errorLine(text, cause)
    const place = line === undefined ? '' : ` at line ${line}`
    throw unusableFile(file, `it is not valid JSON${place}. Check commas and quotes`, cause)
  }
}

const errorLine = (text: string, error: unknown): number | undefined => {
  const position = /position (\d+)/.exec(error instanceof Error ? error.message : '')?.[1]
  return position === undefined ? undefined : text.slice(0, Number(position)).split('\n').length
}

async function importDefault(file: string, text: string): Promise<unknown> {
  // The hash makes the URL new after a change; the module cache would return the old module otherwise.
  const url = `${pathToFileURL(resolve(file)).href}?${hash('sha256', text).slice(0, 16)}`
  const module = await import(url).catch((cause: unknown) => {
    const kind = cause instanceof Error ? cause.name : 'unknown error'
    throw unusableFile(file, `it cannot be loaded (${kind}). Run it with node to see the error`, cause)
  })
  if ((module as { default?: unknown }).default !== undefined) return module.default
  throw unusableFile(file, 'it has no default export. Write export default { … }')
}

const unusableFile = (file: string, reason: string, cause?: unknown): MemoryError =>
  new MemoryError('bad-option', `The configuration ${file} cannot be used: ${reason}.`, { param: 'config', cause })

function resolvePaths(config: Config, file: string): Config {
  const { store, storeKey, embedder, keys, prices, mcp } = config
  return {
    ...config,
    ...(store === undefined ? {} : { store: resolvePath(store, /^sqlite:(?=.)/, file) }),
    ...(storeKey === undefined ? {} : { storeKey: resolvePath(storeKey, /^file:(?=.)/, file) }),
    ...(embedder === undefined ? {} : { embedder: resolvePath(embedder, /^transformers:[^@]+@(?=.)/, file) }),
    ...(keys?.file === undefined ? {} : { keys: { ...keys, file: resolvePath(keys.file, /^/, file) } }),
    ...(typeof prices === 'string' ? { prices: resolvePath(prices, /^/, file) } : {}),
    ...(mcp === undefined ? {} : { mcp: resolveMcpPaths(mcp, file) }),
  }
}

function resolveMcpPaths(mcp: NonNullable<Config['mcp']>, file: string): NonNullable<Config['mcp']> {
  const resolveAll = (paths: readonly string[]): string[] => paths.map((path) => resolvePath(path, /^/, file))
  const { allow, users, audit } = mcp
  return {
    ...mcp,
    ...(allow === undefined ? {} : { allow: resolveAll(allow) }),
    ...(users === undefined
      ? {}
      : { users: Object.fromEntries(Object.entries(users).map(([name, paths]) => [name, resolveAll(paths)])) }),
    ...(audit === undefined ? {} : { audit: resolvePath(audit, /^/, file) }),
  }
}

/** Resolves the path after a scheme. Stays as written when the file is in the current folder. */
function resolvePath(text: string, scheme: RegExp, file: string): string {
  const [prefix] = scheme.exec(text) ?? []
  if (prefix === undefined) return text
  const path = text.slice(prefix.length)
  return isAbsolute(path) || resolve(dirname(file)) === resolve('.') ? text : prefix + join(dirname(file), path)
}
