import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { MemoryError } from '../../domain/error.ts'
import { type ProfileName, profiles } from '../../profiles/index.ts'
import type { MemorySystem } from '../system.ts'
import { bm25System } from './bm25.ts'
import { createProfileSystem } from './profile.ts'
import { windowSystem } from './window.ts'

/** Names of the systems that `resolveSystems` knows without a module. */
export const builtInSystemNames: readonly string[] = [...Object.keys(profiles), 'window', 'bm25']

/**
 * Returns the systems with these names. A name with a slash, or with the extension of a script, is the path of a module
 * whose default export is a system or an array of systems.
 *
 * @throws {MemoryError} `bad-option` for unknown names, modules that cannot be loaded and names that occur twice.
 */
export async function resolveSystems(names: readonly string[]): Promise<MemorySystem[]> {
  const systems: MemorySystem[] = []
  for (const name of names) systems.push(...(isModule(name) ? await loadModule(name) : [resolveBuiltIn(name)]))
  for (const [index, { name }] of systems.entries())
    if (systems.findIndex((other) => other.name === name) !== index)
      throw invalid(`System ${JSON.stringify(name)} occurs twice. Give each system its own name.`)
  return systems
}

const isModule = (name: string): boolean => /[/\\]|\.[cm]?[jt]s$/.test(name)

const invalid = (message: string, cause?: unknown): MemoryError =>
  new MemoryError('bad-option', message, { param: 'system', ...(cause === undefined ? {} : { cause }) })

function resolveBuiltIn(name: string): MemorySystem {
  if (name === 'window') return windowSystem
  if (name === 'bm25') return bm25System
  if (Object.hasOwn(profiles, name)) return createProfileSystem(name as ProfileName)
  throw invalid(
    `Unknown system ${JSON.stringify(name)}. Use one of: ${builtInSystemNames.join(', ')}, or the path of a module such as ./peer.ts.`,
  )
}

async function loadModule(path: string): Promise<MemorySystem[]> {
  const loaded = (await import(pathToFileURL(resolve(path)).href).catch((cause: unknown) => {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw invalid(`Cannot load ${path}: ${reason}. Name a module whose default export is a memory system.`, cause)
  })) as { readonly default?: unknown }
  const systems: readonly unknown[] = Array.isArray(loaded.default) ? loaded.default : [loaded.default]
  if (systems.length > 0 && systems.every(isMemorySystem)) return [...systems]
  throw invalid(
    `${path} exports no memory system. Its default export must be { name, open(conversation) } or an array of them.`,
  )
}

const isMemorySystem = (value: unknown): value is MemorySystem =>
  typeof value === 'object' &&
  value !== null &&
  typeof (value as MemorySystem).name === 'string' &&
  typeof (value as MemorySystem).open === 'function'
