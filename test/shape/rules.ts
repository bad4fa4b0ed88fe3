import { isBuiltin } from 'node:module'
import { posix } from 'node:path'
import { Visitor } from 'vite'
import { importsOf, lineAt, type Source } from './source.ts'

/** A rule names what is wrong with a file, and nothing when all is well. */
export type Rule = (source: Source) => readonly string[]

const below = ['domain', 'text', 'search', 'context', 'upkeep', 'profiles', 'stores', 'lifecycle', 'memory']
const face = [...below, 'tokenizers', 'portable', 'providers', 'open', 'index']

/** What each room may import besides itself. A file belongs to the longest name its path begins with. */
const rooms: Readonly<Record<string, readonly string[]>> = {
  domain: [],
  text: ['domain'],
  profiles: ['domain'],
  search: ['domain', 'text'],
  context: ['domain', 'text', 'search'],
  upkeep: ['domain', 'text', 'context', 'search'],
  tokenizers: ['domain', 'text', 'context'],
  'stores/ram': ['domain', 'text', 'search'],
  stores: ['domain', 'text', 'search', 'context'],
  lifecycle: ['domain', 'text', 'search', 'context', 'upkeep', 'profiles', 'stores/ram', 'memory'],
  memory: ['domain', 'text', 'search', 'context', 'upkeep', 'profiles', 'stores/ram', 'lifecycle'],
  open: ['domain', 'text', 'profiles', 'memory', 'lifecycle', 'upkeep'],
  browser: ['domain', 'text', 'search', 'context', 'upkeep', 'profiles', 'stores/ram', 'lifecycle', 'memory', 'open'],
  files: ['domain', 'text', 'search', 'context', 'upkeep', 'memory'],
  portable: [...below, 'graph'],
  providers: below,
  index: [...below, 'tokenizers', 'graph', 'portable', 'providers', 'open'],
  'adapters/session-memory': [
    'domain',
    'text',
    'search',
    'context',
    'upkeep',
    'profiles',
    'stores/ram',
    'lifecycle',
    'memory',
    'browser',
  ],
  adapters: face,
  graph: below,
  handoff: [...face, 'graph'],
  server: [...face, 'files', 'graph', 'handoff', 'mcp'],
  mcp: [...face, 'graph', 'handoff'],
  cli: [...face, 'adapters', 'server', 'graph', 'handoff', 'mcp'],
}

/** Runs in a browser's worker: no Node, no packages. */
const isomorphic = [
  'domain',
  'text',
  'search',
  'context',
  'upkeep',
  'lifecycle',
  'profiles',
  'stores/ram',
  'memory',
  'open',
  'browser',
  'adapters/session-memory',
]
/** Where time and chance are arguments; the two faces bring the clock in. */
const pure = isomorphic.filter((room) => room !== 'browser' && room !== 'adapters/session-memory')

const within = (path: string, room: string): boolean => path === room || path.startsWith(`${room}/`)
const inside = (path: string): string => path.replace(/^src\//, '').replace(/\.tsx?$/, '')
const roomOf = (path: string): string | undefined =>
  Object.keys(rooms)
    .filter((room) => within(inside(path), room))
    .sort((a, b) => b.length - a.length)[0]
const isIn = (path: string, names: readonly string[]): boolean =>
  path.startsWith('src/') && names.some((name) => within(inside(path), name))
const isRelative = (specifier: string): boolean => specifier.startsWith('.')

export const atMost =
  (lines: number): Rule =>
  ({ text }) => {
    const count = text.trimEnd().split('\n').length
    return count > lines ? [`has ${count} lines, at most ${lines}`] : []
  }

export const looksDownwards: Rule = (source) => {
  const room = roomOf(source.path)
  if (room === undefined) return ['is in no room of the table']
  const targets = importsOf(source)
    .filter(isRelative)
    .map((specifier) => posix.join(posix.dirname(source.path), specifier))
    .filter((target) => target !== 'package.json')
  const allowed = [room, ...(rooms[room] ?? [])]
  return targets.filter((target) => !isIn(target, allowed)).map((target) => `imports ${target}`)
}

/** Bare imports must be declared packages or builtins written with `node:`. */
export const importsOnly =
  (declared: readonly string[]): Rule =>
  (source) =>
    importsOf(source)
      .filter((specifier) => !isRelative(specifier))
      .filter(
        (specifier) =>
          !(specifier.startsWith('node:') && isBuiltin(specifier)) && !declared.includes(packageOf(specifier)),
      )
      .map((specifier) => `imports undeclared ${specifier}`)

const packageOf = (specifier: string): string =>
  specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')

export const standsAlone: Rule = (source) =>
  isIn(source.path, isomorphic)
    ? importsOf(source)
        .filter((specifier) => !isRelative(specifier))
        .map((specifier) => `imports ${specifier} in the core`)
    : []

export const takesTimeAsArgument: Rule = (source) => {
  if (!isIn(source.path, pure)) return []
  const found: string[] = []
  const note = (node: { start: number }, what: string) =>
    found.push(`line ${lineAt(source, node.start)}: ${what} in the core`)
  new Visitor({
    MemberExpression(node) {
      const text = source.text.slice(node.start, node.end)
      if (text === 'Date.now' || text === 'Math.random') note(node, text)
    },
    NewExpression(node) {
      if (node.callee.type === 'Identifier' && node.callee.name === 'Date' && node.arguments.length === 0)
        note(node, 'new Date()')
    },
    CallExpression(node) {
      if (node.callee.type === 'Identifier' && node.callee.name === 'Date') note(node, 'Date()')
    },
    Identifier(node) {
      if (node.name === 'setTimeout' || node.name === 'setInterval') note(node, node.name)
    },
  }).visit(source.program)
  return found
}

export const saysWhatItIs: Rule = ({ path }) => {
  const vague = path.split('/').filter((name) => /util|helper|manager|common/i.test(name))
  return vague.map((name) => `${name} says nothing`)
}

export const functionsAtMost =
  (lines: number): Rule =>
  (source) => {
    const found: string[] = []
    const measure = (node: { start: number; end: number }) => {
      const first = lineAt(source, node.start)
      const count = lineAt(source, node.end) - first + 1
      if (count > lines) found.push(`line ${first}: a function of ${count} lines, at most ${lines}`)
    }
    new Visitor({ FunctionDeclaration: measure, FunctionExpression: measure, ArrowFunctionExpression: measure }).visit(
      source.program,
    )
    return found
  }

/** A row proved by a test that never runs is not proved. */
export const runsEveryTest: Rule = (source) => {
  const found: string[] = []
  new Visitor({
    MemberExpression(node) {
      const text = source.text.slice(node.start, node.end)
      if (/^(it|test|describe)\.(skip|only|todo)$/.test(text)) found.push(`line ${lineAt(source, node.start)}: ${text}`)
    },
  }).visit(source.program)
  return found
}
