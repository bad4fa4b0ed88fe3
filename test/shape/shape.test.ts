import { existsSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { describe, expect, it } from 'vitest'
import { hasConventionalFormat, readCommitSubjects } from './commits.ts'
import { findCycles } from './cycles.ts'
import { collectPatterns } from './patterns/collect.ts'
import { checkPatterns } from './patterns/rule.ts'
import {
  awaitsBeforeDisposal,
  coreImportsNoPackages,
  coreTakesTimeAsArgument,
  exportsNoParticiples,
  hasSpecificName,
  importsDeclaredPackages,
  importsInOneDirection,
  maxCommentWidth,
  maxFunctionLines,
  maxLines,
  opensCommentsPlainly,
  type Rule,
  runsEveryTest,
} from './rules.ts'
import { parseSource, readSources, root, type Source } from './source.ts'

const src = readSources('src')
const tests = readSources('test')
const page = readSources('inspector')
const others = readSources('scripts', 'examples', 'tools')
const bench = readSources('bench')

type Manifest = { name: string } & Partial<
  Record<'dependencies' | 'peerDependencies' | 'optionalDependencies' | 'devDependencies', Record<string, string>>
>
const readManifest = (path: string): Manifest =>
  existsSync(root + path) ? JSON.parse(readFileSync(root + path, 'utf8')) : { name: 'none' }
const shippedPackages = ({ dependencies, peerDependencies, optionalDependencies }: Manifest) =>
  Object.keys({ ...dependencies, ...peerDependencies, ...optionalDependencies })
const manifest = readManifest('package.json')
/** Development dependencies that the build writes into the package. */
const vendoredPackages = [
  '@clack/prompts',
  '@modelcontextprotocol/client',
  '@modelcontextprotocol/node',
  '@modelcontextprotocol/server',
  '@orama/stemmers',
  '@redis/client',
  'busboy',
  'commander',
  'csv-parse',
  'eventsource-parser',
  'fast-string-width',
  'gpt-tokenizer',
  'htmlparser2',
  'mammoth',
  'pg',
  'pino',
  'prom-client',
  'undici',
  'unpdf',
  'zod',
]
const srcPackages = [...shippedPackages(manifest), ...vendoredPackages]
const testPackages = [manifest.name, ...srcPackages, ...Object.keys(manifest.devDependencies ?? {})]
const benchManifest = readManifest('bench/package.json')
const benchPackages = [
  ...testPackages,
  ...shippedPackages(benchManifest),
  ...Object.keys(benchManifest.devDependencies ?? {}),
]

const check = (sources: readonly Source[], rule: Rule) =>
  sources.flatMap((source) => rule(source).map((violation) => `${source.path} ${violation}`))

/** Lists folders with more files than allowed; subfolders count separately. */
function findLargeFolders(paths: readonly string[], limit: number): readonly string[] {
  const counts = new Map<string, number>()
  for (const path of paths) counts.set(posix.dirname(path), (counts.get(posix.dirname(path)) ?? 0) + 1)
  return [...counts].filter(([, count]) => count > limit).map(([folder, count]) => `${folder} has ${count} files`)
}

const maxSrcFiles = 25
/** `src/cli` has one file per command. */
const maxCliFiles = 32

describe('the repository', () => {
  it('has at most 450 lines per source file and 500 per other file', () =>
    expect([
      ...check([...src, ...page], maxLines(450)),
      ...check([...tests, ...others, ...bench], maxLines(500)),
    ]).toEqual([]))
  it('has at most 60 lines per function', () => expect(check([...src, ...page], maxFunctionLines(60))).toEqual([]))
  it('has comments of at most 120 columns', () => expect(check([...src, ...page], maxCommentWidth(120))).toEqual([]))
  it('has at most 25 files per source folder', () => {
    const paths = [...src, ...page].map(({ path }) => path)
    const isCli = (path: string) => path.startsWith('src/cli/')
    expect([
      ...findLargeFolders(
        paths.filter((path) => !isCli(path)),
        maxSrcFiles,
      ),
      ...findLargeFolders(paths.filter(isCli), maxCliFiles),
    ]).toEqual([])
  })
  it('imports in one direction', () => expect(check(src, importsInOneDirection)).toEqual([]))
  it('has no import cycles', () => expect(findCycles([...src, ...page])).toEqual([]))
  it('imports only declared packages', () =>
    expect([
      ...check(src, importsDeclaredPackages(srcPackages)),
      ...check([...tests, ...page, ...others], importsDeclaredPackages(testPackages)),
      ...check(bench, importsDeclaredPackages(benchPackages)),
    ]).toEqual([]))
  it('has a core without Node and packages', () => expect(check(src, coreImportsNoPackages)).toEqual([]))
  it('has a core without clocks, timers and randomness', () => expect(check(src, coreTakesTimeAsArgument)).toEqual([]))
  it('has specific file names', () =>
    expect(check([...src, ...page, ...tests, ...others, ...bench], hasSpecificName)).toEqual([]))
  it('has no comments that open with a relative clause', () =>
    expect(check([...src, ...page], opensCommentsPlainly)).toEqual([]))
  it('exports no participles', () => expect(check([...src, ...page], exportsNoParticiples)).toEqual([]))
  it('closes resources only after the calls that use them', () =>
    expect(check([...src, ...page, ...tests, ...others, ...bench], awaitsBeforeDisposal)).toEqual([]))
  it('has no regular expressions that take superlinear time', async () => {
    const sources = [...src, ...page.filter(({ path }) => path.startsWith('inspector/src/'))]
    expect(checkPatterns(await collectPatterns(sources))).toEqual([])
  })
  it('runs every test', () => expect(check(tests, runsEveryTest)).toEqual([]))
  it('has commit messages of the form type(scope): summary', () =>
    expect((readCommitSubjects() ?? []).filter((subject) => !hasConventionalFormat(subject))).toEqual([]))
})

describe('the rules find', () => {
  const run = (rule: Rule, path: string, text: string) => rule(parseSource(path, text))

  it('a file that is too long', () =>
    expect(run(maxLines(2), 'src/domain/a.ts', 'a\nb\nc\n')).toEqual(['has 3 lines, at most 2 are allowed']))
  it('a function that is too long', () =>
    expect(run(maxFunctionLines(2), 'src/domain/a.ts', '\nconst f = () => {\n  return 1\n}')).toEqual([
      'line 2: function with 3 lines, at most 2 are allowed',
    ]))
  it('a comment and a string that are too wide, but not other code', () => {
    const wide = 'x'.repeat(20)
    const text = `/**\n * ${wide}\n * @example\n * ${wide}\n */\nconst a = '${wide}' // ${wide}`
    expect(run(maxCommentWidth(20), 'src/domain/a.ts', text)).toEqual([
      'line 2: 23 characters, at most 20 are allowed',
      'line 6: 56 characters, at most 20 are allowed',
    ])
  })
  it('a folder with too many files', () =>
    expect(findLargeFolders(['src/a/1.ts', 'src/a/2.ts', 'src/a/b/3.ts'], 1)).toEqual(['src/a has 2 files']))
  it('an import upwards, of a value or of a type, and a re-export', () =>
    expect(
      run(
        importsInOneDirection,
        'src/text/a.ts',
        "import { a } from '../domain/a.ts'\nimport type { M } from '../memory.ts'\nexport { s } from '../server/s.ts'",
      ),
    ).toEqual(['imports src/memory.ts', 'imports src/server/s.ts']))
  it('a dynamic import and an import type', () =>
    expect(
      run(
        importsInOneDirection,
        'src/memory.ts',
        "type S = import('./stores/sqlite.ts').S\nawait import('./providers/offline.ts')",
      ),
    ).toEqual(['imports src/stores/sqlite.ts', 'imports src/providers/offline.ts']))
  it('a file outside every folder of the table', () =>
    expect(run(importsInOneDirection, 'src/attic/a.ts', '')).toEqual(['is in no folder of test/shape/layers.ts']))
  it('an import cycle, also of types, but not a diamond', () => {
    const cycle = [
      parseSource('src/a.ts', "import './b.ts'\nimport './d.ts'"),
      parseSource('src/b.ts', "import type { C } from './sub/c.ts'\nimport './d.ts'"),
      parseSource('src/d.ts', ''),
      parseSource('src/sub/c.ts', "export { a } from '../a.ts'"),
    ]
    expect(findCycles(cycle)).toEqual([['src/a.ts', 'src/b.ts', 'src/sub/c.ts']])
    expect(findCycles(cycle.slice(0, 3))).toEqual([])
  })
  it('an undeclared package and a bare builtin', () =>
    expect(
      run(
        importsDeclaredPackages(['zod', '@a/b']),
        'src/cli/a.ts',
        "import 'zod/v4'\nimport '@a/b/c'\nimport 'node:fs'\nimport 'fs'\nimport '@a/c'\nimport 'node:nothing'",
      ),
    ).toEqual(['imports undeclared fs', 'imports undeclared @a/c', 'imports undeclared node:nothing']))
  it('Node in the core only', () => {
    expect(run(coreImportsNoPackages, 'src/stores/ram.ts', "import 'node:fs'")).toEqual(['imports node:fs in the core'])
    expect(run(coreImportsNoPackages, 'src/stores/sqlite.ts', "import 'node:fs'")).toEqual([])
  })
  it('clocks, timers and randomness in the core, but not in comments', () => {
    const text =
      '// Date.now()\nDate.now()\nnew Date()\nnew Date(0)\nconst now = Date.now\nMath.random()\nsetTimeout(f, 1)'
    expect(run(coreTakesTimeAsArgument, 'src/memory.ts', text)).toEqual([
      'line 2: Date.now in the core',
      'line 3: new Date() in the core',
      'line 5: Date.now in the core',
      'line 6: Math.random in the core',
      'line 7: setTimeout in the core',
    ])
    expect(run(coreTakesTimeAsArgument, 'src/browser.ts', text)).toEqual([])
  })
  it('a file name that is not specific', () => {
    expect(run(hasSpecificName, 'src/text/tokenUtils.ts', '')).toEqual(['tokenUtils.ts is not specific'])
    expect(run(hasSpecificName, 'src/text/frequentWords.ts', '')).toEqual([])
  })
  it('a comment that opens with a relative clause, but not a later word or a string', () => {
    const text =
      '/** What is stored. */\n// Whoever asks.\n/**\n * Reads a file.\n * How is not said.\n */\n// Stores what is new.\nconst a = "// What"'
    expect(run(opensCommentsPlainly, 'src/domain/a.ts', text)).toEqual([
      'line 1: comment opens with What',
      'line 2: comment opens with Whoever',
      'line 5: comment opens with How',
    ])
  })
  it('an exported participle, but not an adjective with its noun or a proper noun', () => {
    const text =
      'export type Told = 1\nexport const gathered = 1\nexport function resting() {}\nconst kept = 1\nexport { kept }\n' +
      'export type ParsedRequest = 1\nexport const isExpired = 1\nexport type Framing = 1\nconst heard = 1'
    expect(run(exportsNoParticiples, 'src/domain/a.ts', text)).toEqual([
      'line 1: exports the participle Told',
      'line 2: exports the participle gathered',
      'line 3: exports the participle resting',
      'line 5: exports the participle kept',
    ])
  })
  it('a call with a resource that is returned without await, but not an awaited one or one in a callback', () => {
    const text = `async function a() {
      await using memory = await open()
      if (x) return clear(memory)
      if (y) return memory.context(key)
      if (z) return await clear(memory)
      use(() => { return clear(memory) })
      return print(text)
    }`
    expect(run(awaitsBeforeDisposal, 'src/a.ts', text)).toEqual([
      'line 3: returns a call with memory without await',
      'line 4: returns a call with memory without await',
    ])
  })
  it('a test that is skipped', () =>
    expect(run(runsEveryTest, 'test/a.test.ts', "it.skip('a', () => {})")).toEqual(['line 1: it.skip']))
  it('a commit message of another form', () => {
    const subjects = [
      'feat(recall): rank passages instead of whole messages',
      'refactor: move files',
      'Passages are ranked',
      'fix(store): wip',
      'docs(readme): shorten.',
    ]
    expect(subjects.filter((subject) => !hasConventionalFormat(subject))).toEqual(subjects.slice(2))
  })
})
