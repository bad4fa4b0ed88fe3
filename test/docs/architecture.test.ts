import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect } from 'vitest'
import { verifies } from '../requirements/verifies.ts'
import { root } from '../shape/source.ts'

const text = readFileSync(`${root}ARCHITECTURE.md`, 'utf8')
const folders = ['src', 'test', 'inspector', 'bench', 'data', 'docs', 'tools']
/** All files, and the folders with a slash at their end. */
const paths = folders.flatMap((folder) =>
  readdirSync(root + folder, { recursive: true, withFileTypes: true })
    .filter(({ parentPath }) => !parentPath.includes('node_modules'))
    .map((entry) => `${entry.parentPath}/${entry.name}${entry.isDirectory() ? '/' : ''}`.slice(root.length)),
)
const allPaths = [...paths, ...folders.map((folder) => `${folder}/`)]

/** Names of files and folders in backquotes or in a diagram; URLs and patterns have other signs. */
const namesIn = (part: string): readonly string[] =>
  [...part.matchAll(/(?<![\w./*@-])(?:[\w-]+\/)*[\w.-]+(?:\/(?=`)|\.(?:tsx?|css|md)\b)/g)].map(([name]) => name)
const isBelow = (folder: string, name: string): boolean =>
  allPaths.some((path) => path.startsWith(folder) && (path === name || path.endsWith(`/${name}`)))

const lines = text.split('\n')
const rows = lines.filter((line) => /^\| `/.test(line)).map((line) => line.split('|').slice(1, -1))
const prose = lines.filter((line) => !/^\| `/.test(line)).join('\n')
const foldersOf = (cell: string): readonly string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)

describe('ARCHITECTURE.md', () => {
  verifies('P-03', 'table of folders › has each once, and only those that exist', () => {
    const listed = rows.flatMap(([folder = '']) => foldersOf(folder))
    expect(listed.length).toBeGreaterThan(30)
    expect(listed.filter((name, index) => listed.indexOf(name) !== index)).toEqual([])
    expect(listed.filter((name) => !allPaths.includes(name.replace('*.ts', '')))).toEqual([])
  })

  verifies('P-03', 'files and folders that it names › exist', () => {
    const missing = rows.flatMap(([first = '', ...cells]) => {
      const within = foldersOf(first).map((name) => name.replace(/[^/]*$/, ''))
      return namesIn(cells.join('|'))
        .filter((name) => !allPaths.includes(name) && !within.some((folder) => isBelow(folder, name)))
        .map((name) => `${first.trim()} ${name}`)
    })
    expect([...missing, ...namesIn(prose).filter((name) => !isBelow('', name))]).toEqual([])
  })
})
