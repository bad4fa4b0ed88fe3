import { isBuiltin } from 'node:module'
import { Visitor } from 'vite'
import { allowedImports, coreFolders, folderOf, isInFolders, pureFolders } from './layers.ts'
import { isRelative, lineAt, listExports, listImportedPaths, listImports, type Source } from './source.ts'

/** Returns the violations in one file; an empty list means that the file follows the rule. */
export type Rule = (source: Source) => readonly string[]

/** Files have at most `limit` lines. */
export const maxLines =
  (limit: number): Rule =>
  ({ text }) => {
    const count = text.trimEnd().split('\n').length
    return count > limit ? [`has ${count} lines, at most ${limit} are allowed`] : []
  }

/** Functions have at most `limit` lines. */
export const maxFunctionLines =
  (limit: number): Rule =>
  (source) => {
    const violations: string[] = []
    const measure = (node: { start: number; end: number }) => {
      const first = lineAt(source, node.start)
      const count = lineAt(source, node.end) - first + 1
      if (count > limit) violations.push(`line ${first}: function with ${count} lines, at most ${limit} are allowed`)
    }
    new Visitor({ FunctionDeclaration: measure, FunctionExpression: measure, ArrowFunctionExpression: measure }).visit(
      source.program,
    )
    return violations
  }

/** Comments have at most `limit` characters per line, examples excepted; the formatter wraps code. */
export const maxCommentWidth =
  (limit: number): Rule =>
  (source) => {
    const violations: string[] = []
    const lines = source.text.split('\n')
    for (const { text, start } of source.comments) {
      const first = lineAt(source, start)
      const prose = text.split('@example')[0] as string
      for (let line = first; line < first + prose.split('\n').length; line++) {
        const width = lines[line - 1]?.length ?? 0
        if (width > limit) violations.push(`line ${line}: ${width} characters, at most ${limit} are allowed`)
      }
    }
    return violations
  }

/** Lists the lines of quoted strings and template strings. */
/** Folders import only the folders below them (`layers.ts`). */
export const importsInOneDirection: Rule = (source) => {
  const folder = folderOf(source.path)
  if (folder === undefined) return ['is in no folder of test/shape/layers.ts']
  const allowed = [folder, ...(allowedImports[folder] ?? [])]
  return listImportedPaths(source)
    .filter((target) => target !== 'package.json' && !isInFolders(target, allowed))
    .map((target) => `imports ${target}`)
}

/** Bare imports are declared packages, or builtins with the `node:` prefix. */
export const importsDeclaredPackages =
  (declared: readonly string[]): Rule =>
  (source) =>
    listImports(source)
      .filter((specifier) => !isRelative(specifier))
      .filter(
        (specifier) =>
          !(specifier.startsWith('node:') && isBuiltin(specifier)) && !declared.includes(packageName(specifier)),
      )
      .map((specifier) => `imports undeclared ${specifier}`)

const packageName = (specifier: string): string =>
  specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')

/** The core runs in a browser's worker: it imports neither Node nor packages. */
export const coreImportsNoPackages: Rule = (source) =>
  isInFolders(source.path, coreFolders)
    ? listImports(source)
        .filter((specifier) => !isRelative(specifier))
        .map((specifier) => `imports ${specifier} in the core`)
    : []

/** The core takes time and randomness as arguments and starts no timers. */
export const coreTakesTimeAsArgument: Rule = (source) => {
  if (!isInFolders(source.path, pureFolders)) return []
  const violations: string[] = []
  const report = (node: { start: number }, name: string) =>
    violations.push(`line ${lineAt(source, node.start)}: ${name} in the core`)
  new Visitor({
    MemberExpression(node) {
      const text = source.text.slice(node.start, node.end)
      if (text === 'Date.now' || text === 'Math.random') report(node, text)
    },
    NewExpression(node) {
      if (node.callee.type === 'Identifier' && node.callee.name === 'Date' && node.arguments.length === 0)
        report(node, 'new Date()')
    },
    CallExpression(node) {
      if (node.callee.type === 'Identifier' && node.callee.name === 'Date') report(node, 'Date()')
    },
    Identifier(node) {
      if (node.name === 'setTimeout' || node.name === 'setInterval') report(node, node.name)
    },
  }).visit(source.program)
  return violations
}

/** File and folder names state their subject. */
export const hasSpecificName: Rule = ({ path }) =>
  path
    .split('/')
    .filter((name) => /util|helper|manager|common/i.test(name))
    .map((name) => `${name} is not specific`)

/** Comments open with a verb or a noun, not with a relative clause. */
export const opensCommentsPlainly: Rule = (source) =>
  source.comments.flatMap(({ text, start }) => {
    const first = lineAt(source, start)
    return text.split('\n').flatMap((line, index) => {
      const opening = /^[\s*]*(What|Who|Whoever|Whose|Where|Whether|How)\s/.exec(line)?.[1]
      return opening === undefined ? [] : [`line ${first + index}: comment opens with ${opening}`]
    })
  })

/** Participles and verbs in the past tense that were used as names of types and functions. */
const participles = new Set(
  [
    'asked begun borrowed bound broken brought built chosen drawn driven eaten fallen felt forgotten found given gone',
    'grown heard held kept known laid learnt left lent lost made meant met paid put read said seen sent shown sold',
    'spent spoken stood sworn taken taught thought thrown told torn understood woken won worn woven written',
  ]
    .join(' ')
    .split(' '),
)

/** Words on `-ed` and `-ing` that are nouns or adjectives in their own right, and the verb `read`. */
const properWords = new Set(
  [
    'read embed feed seed speed need shed',
    'framing framings heading headings embedding embeddings encoding ranking setting settings string routing tracing',
    'timing logging keyring listing posting warning warnings spacing padding mapping binding billing pricing rendering',
    'nothing anything something everything',
  ]
    .join(' ')
    .split(' '),
)

/** Exported names are nouns or verbs: a participle alone says what happened, but not what the thing is. */
export const exportsNoParticiples: Rule = (source) =>
  listExports(source)
    .filter(({ name }) => /^[A-Za-z][a-z]+$/.test(name))
    .filter(({ name }) => {
      const word = name.toLowerCase()
      return !properWords.has(word) && (participles.has(word) || /(?:ed|ing)$/.test(word))
    })
    .map(({ name, start }) => `line ${lineAt(source, start)}: exports the participle ${name}`)

/** No test is skipped, focused or left to do: the requirement it cites would count as proven. */
export const runsEveryTest: Rule = (source) => {
  const violations: string[] = []
  new Visitor({
    MemberExpression(node) {
      const text = source.text.slice(node.start, node.end)
      if (/^(it|test|describe)\.(skip|only|todo)$/.test(text))
        violations.push(`line ${lineAt(source, node.start)}: ${text}`)
    },
  }).visit(source.program)
  return violations
}

/** A call that uses an `await using` resource is awaited before it is returned: otherwise the resource is closed first. */
export const awaitsBeforeDisposal: Rule = (source) => {
  const violations: string[] = []
  const resources: string[][] = []
  const enter = () => void resources.push([])
  const leave = () => void resources.pop()
  new Visitor({
    FunctionDeclaration: enter,
    FunctionExpression: enter,
    ArrowFunctionExpression: enter,
    'FunctionDeclaration:exit': leave,
    'FunctionExpression:exit': leave,
    'ArrowFunctionExpression:exit': leave,
    VariableDeclaration({ kind, declarations }) {
      if (kind !== 'await using') return
      for (const { id } of declarations) resources.at(-1)?.push(source.text.slice(id.start, id.end))
    },
    ReturnStatement({ argument }) {
      if (argument?.type !== 'CallExpression') return
      const used = [argument.callee, ...argument.arguments].map(({ start, end }) => source.text.slice(start, end))
      const resource = resources.at(-1)?.find((name) => used.some((text) => new RegExp(`^${name}\\b`).test(text)))
      if (resource !== undefined)
        violations.push(`line ${lineAt(source, argument.start)}: returns a call with ${resource} without await`)
    },
  }).visit(source.program)
  return violations
}
