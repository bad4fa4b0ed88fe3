import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { posix } from 'node:path'
import { describe, expect, it } from 'vitest'
import { toAnchor } from '../../scripts/docs/library.ts'
import { verifies } from '../requirements/verifies.ts'
import { root } from '../shape/source.ts'
import { pages } from './pages.ts'

const others = ['ARCHITECTURE.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', 'FEATURES.md']
const documents = [...pages, ...others.map((path) => ({ path, text: readFileSync(root + path, 'utf8') }))]

/** Text without fenced blocks and inline code, in which brackets are no links. */
const proseOf = (text: string): string =>
  text
    .replaceAll(/^( *)```.*?^\1```$/gms, '')
    .replaceAll(/(`+)(?:(?!\1).)+\1/g, (code) => code.replaceAll(/[()[\]]/g, ' '))

const anchorsOf = (text: string): ReadonlySet<string> => {
  const counts = new Map<string, number>()
  const headings = text.replaceAll(/^( *)```.*?^\1```$/gms, '').matchAll(/^#{1,6} (.+)$/gm)
  return new Set(
    [...headings].map(([, heading = '']) => {
      const anchor = toAnchor(heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll('`', ''))
      const count = counts.get(anchor) ?? 0
      counts.set(anchor, count + 1)
      return count === 0 ? anchor : `${anchor}-${count}`
    }),
  )
}

/** Links of a page to files of the repository, with the path from its root. */
const linksOf = (path: string, text: string) =>
  [...proseOf(text).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, href = '']) => href)
    .filter((href) => !/^[a-z]+:/.test(href))
    .map((href) => {
      const [file = '', anchor] = href.split('#')
      return { href, anchor, target: file === '' ? path : posix.join(posix.dirname(path), file) }
    })

describe('links of the documentation', () => {
  verifies('P-03', 'links › to files and anchors of the repository › resolve', () => {
    const broken = documents.flatMap(({ path, text }) =>
      linksOf(path, text)
        .filter(({ target, anchor }) => {
          if (!existsSync(root + target)) return true
          return anchor !== undefined && !anchorsOf(readFileSync(root + target, 'utf8')).has(anchor)
        })
        .map(({ href }) => `${path}: ${href}`),
    )
    expect(broken).toEqual([])
  })

  verifies('P-03', 'pages of docs › followed from the README › are all reachable', () => {
    const reached = new Set<string>()
    const visit = (path: string): void => {
      if (reached.has(path) || !existsSync(root + path)) return
      reached.add(path)
      if (statSync(root + path).isDirectory())
        for (const name of readdirSync(root + path)) visit(posix.join(path, name))
      else if (path.endsWith('.md'))
        for (const { target } of linksOf(path, readFileSync(root + path, 'utf8'))) visit(target.replace(/\/$/, ''))
    }
    visit('README.md')
    expect(pages.map(({ path }) => path).filter((path) => !reached.has(path))).toEqual([])
  })

  it('pages › searched for words about their own making › have none', () => {
    const making =
      /\b(?:TODO|FIXME|sub-?agents? (?:wrote|built)|worktree|the (?:brief|auditor)|issue \d+)\b|\/(?:tmp|work)\//i
    expect(
      pages.flatMap(({ path, text }) => (making.test(text) ? [`${path}: ${making.exec(text)?.[0]}`] : [])),
    ).toEqual([])
  })
})
