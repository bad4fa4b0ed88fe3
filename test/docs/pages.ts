import { globSync, readFileSync } from 'node:fs'
import { root } from '../shape/source.ts'

/** A fenced block of a page. */
export type Block = {
  readonly page: string
  /** 1-based line of its first line of text. */
  readonly line: number
  readonly language: string
  readonly text: string
}

export type Page = { readonly path: string; readonly text: string; readonly blocks: readonly Block[] }

/** The user documentation: the README and everything below docs. */
export const pages: readonly Page[] = ['README.md', ...globSync('docs/**/*.md', { cwd: root }).sort()].map((path) => {
  const text = readFileSync(root + path, 'utf8')
  return { path, text, blocks: parseBlocks(path, text) }
})

/** Pages that are generated from the sources: their blocks are declarations and usage, not programs. */
export const generatedPages: ReadonlySet<string> = new Set([
  'docs/cli.md',
  'docs/reference/library.md',
  'docs/reference/http.md',
])

export const blocksOf = (language: string): readonly Block[] =>
  pages
    .filter(({ path }) => !generatedPages.has(path))
    .flatMap(({ blocks }) => blocks.filter((block) => block.language === language))

/** Finds a page by its path. */
export function pageAt(path: string): Page {
  const page = pages.find((each) => each.path === path)
  if (page === undefined) throw new Error(`There is no page ${path}.`)
  return page
}

export const nameOf = ({ page, line }: Block): string => `${page}:${line}`

function parseBlocks(page: string, text: string): readonly Block[] {
  return [...text.matchAll(/^( *)```(\w*)[^\n]*\n(.*?)^\1```$/gms)].map(
    ({ 1: indent = '', 2: language = '', 3: body = '', index }) => ({
      page,
      line: text.slice(0, index).split('\n').length + 1,
      language,
      text: body.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
    }),
  )
}
