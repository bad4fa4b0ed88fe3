import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import {
  atMost,
  functionsAtMost,
  importsOnly,
  looksDownwards,
  type Rule,
  runsEveryTest,
  saysWhatItIs,
  standsAlone,
  takesTimeAsArgument,
} from './rules.ts'
import { parseSource, readSources, root, type Source } from './source.ts'

const src = readSources('src')
const tests = readSources('test')
const others = readSources('scripts', 'examples')
const bench = readSources('bench')

type Manifest = { name: string } & Partial<
  Record<'dependencies' | 'peerDependencies' | 'optionalDependencies' | 'devDependencies', Record<string, string>>
>
const manifest = (path: string): Manifest =>
  existsSync(root + path) ? JSON.parse(readFileSync(root + path, 'utf8')) : { name: 'none' }
const shipped = ({ dependencies, peerDependencies, optionalDependencies }: Manifest) =>
  Object.keys({ ...dependencies, ...peerDependencies, ...optionalDependencies })
const own = manifest('package.json')
const inSrc = shipped(own)
const inTests = [own.name, ...inSrc, ...Object.keys(own.devDependencies ?? {})]
const peers = manifest('bench/package.json')
const inBench = [...inTests, ...shipped(peers), ...Object.keys(peers.devDependencies ?? {})]

const faults = (sources: readonly Source[], rule: Rule) =>
  sources.flatMap((source) => rule(source).map((fault) => `${source.path} ${fault}`))

describe('the repository', () => {
  it('has files short enough to read', () =>
    expect([...faults(src, atMost(400)), ...faults([...tests, ...others, ...bench], atMost(500))]).toEqual([]))
  it('has functions short enough to read', () => expect(faults(src, functionsAtMost(60))).toEqual([]))
  it('imports in one direction', () => expect(faults(src, looksDownwards)).toEqual([]))
  it('imports only declared packages', () =>
    expect([
      ...faults(src, importsOnly(inSrc)),
      ...faults([...tests, ...others], importsOnly(inTests)),
      ...faults(bench, importsOnly(inBench)),
    ]).toEqual([]))
  it('has a core without Node and without packages', () => expect(faults(src, standsAlone)).toEqual([]))
  it('has a core without clocks, timers and chance', () => expect(faults(src, takesTimeAsArgument)).toEqual([]))
  it('has names that say something', () =>
    expect(faults([...src, ...tests, ...others, ...bench], saysWhatItIs)).toEqual([]))
  it('runs every test it has', () => expect(faults(tests, runsEveryTest)).toEqual([]))
})

describe('the rules find', () => {
  const check = (rule: Rule, path: string, text: string) => rule(parseSource(path, text))

  it('a file that is too long', () =>
    expect(check(atMost(2), 'src/domain/a.ts', 'a\nb\nc\n')).toEqual(['has 3 lines, at most 2']))
  it('a function that is too long', () =>
    expect(check(functionsAtMost(2), 'src/domain/a.ts', '\nconst f = () => {\n  return 1\n}')).toEqual([
      'line 2: a function of 3 lines, at most 2',
    ]))
  it('an import upwards, of a value or of a type, and a re-export', () =>
    expect(
      check(
        looksDownwards,
        'src/text/a.ts',
        "import { a } from '../domain/a.ts'\nimport type { M } from '../memory.ts'\nexport { s } from '../server/s.ts'",
      ),
    ).toEqual(['imports src/memory.ts', 'imports src/server/s.ts']))
  it('a dynamic import and an import type', () =>
    expect(
      check(
        looksDownwards,
        'src/memory.ts',
        "type S = import('./stores/sqlite.ts').S\nawait import('./providers/offline.ts')",
      ),
    ).toEqual(['imports src/stores/sqlite.ts', 'imports src/providers/offline.ts']))
  it('a file outside every room', () =>
    expect(check(looksDownwards, 'src/attic/a.ts', '')).toEqual(['is in no room of the table']))
  it('an undeclared package and a bare builtin', () =>
    expect(
      check(
        importsOnly(['zod', '@a/b']),
        'src/cli/a.ts',
        "import 'zod/v4'\nimport '@a/b/c'\nimport 'node:fs'\nimport 'fs'\nimport '@a/c'\nimport 'node:nothing'",
      ),
    ).toEqual(['imports undeclared fs', 'imports undeclared @a/c', 'imports undeclared node:nothing']))
  it('Node in the core only', () => {
    expect(check(standsAlone, 'src/stores/ram.ts', "import 'node:fs'")).toEqual(['imports node:fs in the core'])
    expect(check(standsAlone, 'src/stores/sqlite.ts', "import 'node:fs'")).toEqual([])
  })
  it('clocks, timers and chance in the core, but not in comments', () => {
    const text =
      '// Date.now()\nDate.now()\nnew Date()\nnew Date(0)\nconst now = Date.now\nMath.random()\nsetTimeout(f, 1)'
    expect(check(takesTimeAsArgument, 'src/memory.ts', text)).toEqual([
      'line 2: Date.now in the core',
      'line 3: new Date() in the core',
      'line 5: Date.now in the core',
      'line 6: Math.random in the core',
      'line 7: setTimeout in the core',
    ])
    expect(check(takesTimeAsArgument, 'src/browser.ts', text)).toEqual([])
  })
  it('a name that says nothing', () => {
    expect(check(saysWhatItIs, 'src/text/tokenUtils.ts', '')).toEqual(['tokenUtils.ts says nothing'])
    expect(check(saysWhatItIs, 'src/text/frequentWords.ts', '')).toEqual([])
  })
  it('a test that is skipped', () =>
    expect(check(runsEveryTest, 'test/a.test.ts', "it.skip('a', () => {})")).toEqual(['line 1: it.skip']))
})
