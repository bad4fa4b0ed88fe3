import { globSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type ESTree, parseSync, Visitor } from 'vite'

/** Root folder of the repository, with a trailing slash. */
export const root = fileURLToPath(new URL('../../', import.meta.url))

/** A comment without its delimiters, and the offset at which it starts. */
export type Comment = { readonly text: string; readonly start: number }

/** A parsed TypeScript file; `path` is relative to the root of the repository. */
export type Source = {
  readonly path: string
  readonly text: string
  readonly program: ESTree.Program
  readonly comments: readonly Comment[]
}

/** Parses a file; throws a `SyntaxError` that names its path. */
export function parseSource(path: string, text: string): Source {
  const { program, comments, errors } = parseSync(path, text)
  if (errors[0] !== undefined) throw new SyntaxError(`${path}: ${errors[0].message}`)
  return { path, text, program, comments: comments.map(({ value, start }) => ({ text: value, start })) }
}

/** Parses all TypeScript files below these folders, sorted by path. */
export function readSources(...folders: readonly string[]): readonly Source[] {
  const paths = folders.flatMap((folder) =>
    globSync(`${folder}/**/*.{ts,tsx}`, { cwd: root, exclude: ['**/node_modules/**', '**/dist/**'] }),
  )
  return paths
    .map((path) => path.replaceAll('\\', '/'))
    .sort()
    .map((path) => parseSource(path, readFileSync(root + path, 'utf8')))
}

/** Lists the import specifiers of a file as written: values and types, static and dynamic, re-exports included. */
export function listImports(source: Source): readonly string[] {
  const specifiers: string[] = []
  const collect = (node: { source: unknown }) => {
    const from = node.source as { type: string; value?: unknown } | null
    if (from?.type === 'Literal' && typeof from.value === 'string') specifiers.push(from.value)
  }
  new Visitor({
    ImportDeclaration: collect,
    ExportNamedDeclaration: collect,
    ExportAllDeclaration: collect,
    ImportExpression: collect,
    TSImportType: collect,
  }).visit(source.program)
  return specifiers
}

export const isRelative = (specifier: string): boolean => specifier.startsWith('.')

/** Lists the relative imports of a file as paths from the root of the repository. */
export const listImportedPaths = (source: Source): readonly string[] =>
  listImports(source)
    .filter(isRelative)
    .map((specifier) => posix.join(posix.dirname(source.path), specifier))

/** Lists the names a file exports, with their offsets; re-exports from other files are not included. */
export function listExports(source: Source): readonly { readonly name: string; readonly start: number }[] {
  const names: { name: string; start: number }[] = []
  const add = (node: { type: string; start: number; name?: unknown } | null) => {
    if (node?.type === 'Identifier' && typeof node.name === 'string') names.push({ name: node.name, start: node.start })
  }
  new Visitor({
    ExportNamedDeclaration(node) {
      if (node.source !== null) return
      for (const { exported } of node.specifiers) add(exported)
      const { declaration } = node
      if (declaration === null) return
      if (declaration.type === 'VariableDeclaration') for (const { id } of declaration.declarations) add(id)
      else if ('id' in declaration) add(declaration.id)
    },
  }).visit(source.program)
  return names
}

/** 1-based line of an offset. */
export const lineAt = (source: Source, offset: number): number => source.text.slice(0, offset).split('\n').length
