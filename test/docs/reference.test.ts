import { globSync, readFileSync } from 'node:fs'
import { Command } from 'commander'
import { describe, expect, it } from 'vitest'
import type { z } from 'zod'
import { renderHttp } from '../../scripts/docs/http.ts'
import { readEntryPoints, renderLibrary } from '../../scripts/docs/library.ts'
import { addConfigOptions } from '../../src/cli/configOptions.ts'
import { checkEnvironment } from '../../src/cli/options.ts'
import { MemoryError } from '../../src/domain/error.ts'
import { parseProfile } from '../../src/domain/parseProfile.ts'
import { type ProfileName, profiles } from '../../src/profiles/index.ts'
import { configSchema, parseDuration } from '../../src/server/config/schema.ts'
import { mergeSettings } from '../../src/server/config/settings.ts'
import { statusByCode } from '../../src/server/http/httpError.ts'
import { verifies } from '../requirements/verifies.ts'
import { root } from '../shape/source.ts'
import { pageAt } from './pages.ts'

/** Rows of the tables below a heading of a page, as cells. */
function rowsOf(path: string, heading: string): readonly (readonly string[])[] {
  const section =
    pageAt(path)
      .text.split(/^## /m)
      .find((text) => text.startsWith(`${heading}\n`)) ?? ''
  return [...section.matchAll(/^\| (`.*) \|$(?!\n\| ---)/gm)].map(([, row = '']) => row.split(/ *(?<!\\)\| */))
}
/** Names in backquotes in a cell. */
const namesIn = (cell = ''): readonly string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)
const fieldsOf = (path: string, heading: string): readonly string[] =>
  rowsOf(path, heading).flatMap(([first]) => namesIn(first))

describe('library reference', () => {
  const entries = readEntryPoints()

  verifies('P-03', 'exports › of every entry point › have a doc comment', () => {
    const missing = entries.flatMap(({ specifier, exports }) =>
      exports
        .filter(({ doc }) => doc === '')
        .map(({ name, file }) => `${name} of ${specifier}: write a doc comment above it in ${file}`),
    )
    expect([...new Set(missing)]).toEqual([])
  })

  verifies('P-03', 'docs/reference/library.md › compared with the sources › is current (run npm run docs)', () =>
    expect(pageAt('docs/reference/library.md').text).toBe(renderLibrary(entries)),
  )

  it('entry points › of package.json › are all read', () => {
    const { exports } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as { exports: object }
    const paths = Object.keys(exports).filter((path) => path !== './package.json')
    expect(entries.map(({ specifier }) => specifier.replace('threadkeep', '.'))).toEqual(paths)
  })
})

describe('HTTP reference', () => {
  verifies('P-03', 'docs/reference/http.md › compared with the routes › is current (run npm run docs)', () =>
    expect(pageAt('docs/reference/http.md').text).toBe(renderHttp()),
  )
})

describe('errors reference', () => {
  verifies('P-03', 'codes › with their status › are those of the server', () => {
    const { text } = pageAt('docs/reference/errors.md')
    const rows = [...text.matchAll(/^\| (`.*) \|$/gm)].map(([, row = '']) => row.split(' | '))
    const documented = Object.fromEntries(rows.map(([code, status]) => [namesIn(code)[0], Number(status)]))
    const known = Object.fromEntries(Object.entries(statusByCode).map(([code, [status]]) => [code, status]))
    expect(documented, 'Keep one row per code in docs/reference/errors.md.').toEqual(known)
    expect(rows.filter((cells) => cells.length !== 4 || cells.some((cell) => cell === ''))).toEqual([])
  })
})

describe('profile reference', () => {
  const page = 'docs/reference/profiles.md'
  /** Field names that a profile with an unknown field at this place is told to use. */
  const allowedIn = (profile: object): readonly string[] => {
    try {
      parseProfile(profile)
    } catch (error) {
      const [, names = ''] = /Use one of: (.*)\.$/.exec((error as MemoryError).message) ?? []
      return names.split(', ')
    }
    return []
  }
  const { thread } = profiles
  const [band] = thread.bands
  const tail = thread.bands.find(({ claim }) => 'tail' in claim)
  const withBand = (change: object) => ({ ...thread, bands: [{ ...band, ...change }] })

  const sections: readonly (readonly [heading: string, profile: object])[] = [
    ['Profile', { ...thread, unknown: 1 }],
    ['Band', withBand({ unknown: 1 })],
    ['Tail', { ...thread, bands: [{ ...tail, claim: { tail: { unknown: 1 } } }] }],
    ['Lifetime', { ...thread, lifetime: { ...thread.lifetime, unknown: 1 } }],
    ['knowledgePolicy', { ...thread, knowledgePolicy: { ...thread.knowledgePolicy, unknown: 1 } }],
  ]
  for (const [heading, profile] of sections)
    verifies('P-03', `fields of ${heading} › compared with the parser › are complete`, () =>
      expect([...fieldsOf(page, heading)].sort(), `Correct the table ${heading} of ${page}.`).toEqual(
        [...allowedIn(profile)].sort(),
      ),
    )

  it('forms of claims, renderings, conditions and tasks › compared with the parser › are complete', () => {
    const choices = (profile: object): readonly string[] => {
      try {
        parseProfile(profile)
      } catch (error) {
        return /(?:one of) ([^;]*)\.$/.exec((error as MemoryError).message)?.[1]?.split(', ') ?? []
      }
      return []
    }
    const firstFields = (heading: string): readonly string[] =>
      fieldsOf(page, heading).flatMap((form) => /^\{ "(\w+)"/.exec(form)?.[1] ?? [])
    const rule = (change: object) => ({
      ...thread,
      upkeep: [{ when: { usage: 0.5 }, do: { age: 'knowledge' }, ...change }],
    })
    expect([...firstFields('Claim')].sort()).toEqual([...choices(withBand({ claim: {} }))].sort())
    expect([...fieldsOf(page, 'Rendering')].sort()).toEqual(
      [...choices(withBand({ renderings: [{ as: '?' }] }))].sort(),
    )
    const [conditions, tasks] = [choices(rule({ when: {} })), choices(rule({ do: {} }))]
    expect([...new Set(firstFields('Upkeep rule'))].sort()).toEqual([...new Set([...conditions, ...tasks])].sort())
  })

  it('examples of claims, conditions and tasks › put into a profile › are valid', () => {
    for (const form of fieldsOf(page, 'Claim').filter((text) => text.startsWith('{') && !text.includes('…')))
      expect(() => parseProfile(withBand({ claim: JSON.parse(form), renderAs: 'block' })), form).not.toThrow()
    for (const form of fieldsOf(page, 'Upkeep rule').filter((text) => text.startsWith('{'))) {
      const value = JSON.parse(form) as Record<string, unknown>
      const isTask = ['summarise', 'optimise', 'learn'].some((name) => name in value) || value.age === 'knowledge'
      const upkeep = [isTask ? { when: { usage: 0.5 }, do: value } : { when: value, do: { age: 'knowledge' } }]
      expect(() => parseProfile({ ...thread, upkeep }), form).not.toThrow()
    }
    for (const heading of ['Profile', 'Lifetime'])
      for (const [name, , , , example] of rowsOf(page, heading)) {
        const [field = '', [text] = []] = [namesIn(name)[0], namesIn(example)]
        if (text === undefined) continue
        const part = { [field]: JSON.parse(text) as unknown }
        const profile = heading === 'Profile' ? part : { lifetime: { ...thread.lifetime, ...part } }
        expect(() => parseProfile({ ...thread, ...profile }), `${field} ${text}`).not.toThrow()
      }
  })

  it('built-in values › compared with the profiles › are current', () => {
    const [, header = ''] = /^\| field \| (`thread`.*) \|$/m.exec(pageAt(page).text) ?? []
    const names = namesIn(header) as ProfileName[]
    expect(names).toEqual(expect.arrayContaining(Object.keys(profiles)))
    const rows = rowsOf(page, 'Built-in values')
    const shown = rows.map(([field = '', ...values]) => [namesIn(field)[0], ...values])
    expect(shown).toEqual(
      rows.map(([field = '']) => [
        namesIn(field)[0],
        ...names.map((name) => formatValue(name, namesIn(field)[0] ?? '')),
      ]),
    )
    expect(rows).toHaveLength(fieldsOf(page, 'Profile').length - 1)
  })
})

/** Formats a value of a built-in profile as in the reference. */
function formatValue(name: ProfileName, field: string): string {
  const profile = profiles[name]
  if (field === 'bands') return profile.bands.map((band) => band.name).join(', ')
  if (field === 'upkeep') return profile.upkeep.map((rule) => Object.values(rule.do)[0]).join(', ') || 'none'
  if (field === 'knowledgePolicy') return Object.values(profile.knowledgePolicy).join(', ')
  if (field === 'lifetime')
    return Object.entries(profile.lifetime)
      .map((pair) => pair.join(' '))
      .join(', ')
  const value: unknown = Object.entries(profile).find(([key]) => key === field)?.[1]
  return value === undefined ? '–' : Array.isArray(value) ? value.join(', ') : String(value)
}

describe('configuration reference', () => {
  const page = 'docs/reference/configuration.md'
  const shapeOf = (schema: z.ZodType): Readonly<Record<string, z.ZodType>> | undefined => {
    const { def } = schema as unknown as {
      def: { innerType?: z.ZodType; element?: z.ZodType; valueType?: z.ZodType; shape?: Record<string, z.ZodType> }
    }
    const inner = def.innerType ?? def.element ?? def.valueType
    return def.shape ?? (inner === undefined ? undefined : shapeOf(inner))
  }
  const top = configSchema.shape as Readonly<Record<string, z.ZodType>>
  /** Sections with a table of their own. */
  const nested: Readonly<Record<string, z.ZodType | undefined>> = {
    Templates: top.templates,
    Upstreams: top.upstreams,
    Webhook: top.webhook,
    Providers: shapeOf(top.mcp as z.ZodType)?.providers,
  }

  verifies('P-03', 'fields › compared with the schema › are complete', () => {
    const withTables = ['templates', 'upstreams', 'webhook', 'profiles', 'contextWindows']
    const fields = Object.entries(top).flatMap(([name, schema]) => {
      const shape = withTables.includes(name) ? undefined : shapeOf(schema)
      return shape === undefined ? [name] : Object.keys(shape).map((inner) => `${name}.${inner}`)
    })
    expect(
      rowsOf(page, 'Fields')
        .map(([first]) => namesIn(first)[0])
        .sort(),
      `Correct the table Fields of ${page}.`,
    ).toEqual(fields.sort())
    for (const [heading, schema] of Object.entries(nested))
      expect([...fieldsOf(page, heading)].sort(), `Correct the table ${heading} of ${page}.`).toEqual(
        Object.keys((schema && shapeOf(schema)) ?? {}).sort(),
      )
  })

  verifies('P-03', 'defaults › compared with the server › are current', () => {
    const { values } = mergeSettings([], undefined)
    const wrong = rowsOf(page, 'Fields').flatMap(([first, , documented = '']) => {
      const [field = ''] = namesIn(first)
      const value = values.get(field)?.value
      const [shown] = namesIn(documented)
      const isEmpty = value === undefined || (typeof value === 'object' && Object.keys(value as object).length === 0)
      if (isEmpty || field === 'tenantProfile') return []
      return String(value) === shown || parseDuration(shown) === value
        ? []
        : [`${field} is ${String(value)}, not ${documented}`]
    })
    expect(wrong).toEqual([])
  })

  it('flags and variables › compared with the command › are current', () => {
    const { options } = addConfigOptions(new Command())
    const known = options.flatMap(({ long }) =>
      long === '--config' || long === undefined || long === null ? [] : [long],
    )
    const documented = rowsOf(page, 'Fields').flatMap((cells) =>
      namesIn(cells[3]).filter((name) => name.startsWith('--')),
    )
    expect(documented.filter((flag) => !known.includes(flag))).toEqual([])
    expect(known.filter((flag) => !documented.includes(flag))).toEqual([])
  })
})

describe('environment reference', () => {
  const documented = [...pageAt('docs/reference/environment.md').text.matchAll(/^\| (`[A-Z].*?) \|/gm)].flatMap(
    ([, cell]) => namesIn(cell),
  )

  verifies('P-03', 'variables › compared with those that the sources read › are complete', () => {
    const pattern =
      /['.](THREADKEEP_[A-Z_]*[A-Z]|MEMORY_FILE_PATH|[A-Z]+_(?:API_KEY|BASE_URL)|NO_COLOR|FORCE_COLOR|CI)\b/g
    const sources = globSync('src/**/*.ts', { cwd: root }).map((path) => readFileSync(root + path, 'utf8'))
    const read = sources.flatMap((text) => [...text.matchAll(pattern)].map(([, name = '']) => name))
    const missing = [...new Set(read)].filter((name) => !documented.includes(name))
    expect(missing, 'Add these variables to docs/reference/environment.md.').toEqual([])
  })

  it('variables › that are documented › are accepted by every command', () => {
    for (const name of documented) expect(() => checkEnvironment({ [name]: 'x' }, []), name).not.toThrow(MemoryError)
  })
})
