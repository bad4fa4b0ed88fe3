import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type ESTree, parseSync, Visitor } from 'vite'

export const root = fileURLToPath(new URL('../../', import.meta.url))

/** A TypeScript file as its syntax tree; the path starts at the repository's root. */
export type Source = { readonly path: string; readonly text: string; readonly program: ESTree.Program }

export function parseSource(path: string, text: string): Source {
  const { program, errors } = parseSync(path, text)
  if (errors[0] !== undefined) throw new SyntaxError(`${path}: ${errors[0].message}`)
  return { path, text, program }
}

/** Every TypeScript file under these folders, in order of its path. */
export function readSources(...folders: readonly string[]): readonly Source[] {
  const paths = folders.flatMap((folder) =>
    globSync(`${folder}/**/*.{ts,tsx}`, { cwd: root, exclude: ['**/node_modules/**'] }),
  )
  return paths
    .map((path) => path.replaceAll('\\', '/'))
    .sort()
    .map((path) => parseSource(path, readFileSync(root + path, 'utf8')))
}

/** What a file imports, as it is written: values and types, static and dynamic. */
export function importsOf(source: Source): readonly string[] {
  const found: string[] = []
  const take = (node: { source: unknown }) => {
    const from = node.source as { type: string; value?: unknown } | null
    if (from?.type === 'Literal' && typeof from.value === 'string') found.push(from.value)
  }
  new Visitor({
    ImportDeclaration: take,
    ExportNamedDeclaration: take,
    ExportAllDeclaration: take,
    ImportExpression: take,
    TSImportType: take,
  }).visit(source.program)
  return found
}

export const lineAt = (source: Source, offset: number): number => source.text.slice(0, offset).split('\n').length
