import { existsSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type ESTree, parseSync } from 'vite'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** An export of an entry point of the package. */
export type PublicExport = {
  readonly name: string
  /** File that declares it, relative to the root of the repository. */
  readonly file: string
  readonly kind: 'value' | 'type'
  /** Declaration without bodies, as in a `.d.ts` file. */
  readonly declaration: string
  /** Doc comment without tags; empty if there is none. */
  readonly doc: string
}

export type EntryPoint = {
  /** Import specifier, such as `threadkeep/upkeep`. */
  readonly specifier: string
  readonly file: string
  readonly exports: readonly PublicExport[]
}

type Comment = { readonly value: string; readonly start: number; readonly end: number }
type Module = {
  readonly path: string
  readonly text: string
  readonly body: readonly ESTree.Node[]
  readonly comments: readonly Comment[]
}

const modules = new Map<string, Module>()

function readModule(path: string): Module {
  const known = modules.get(path)
  if (known !== undefined) return known
  const text = readFileSync(root + path, 'utf8')
  const { program, comments } = parseSync(path, text)
  const module = { path, text, body: program.body as readonly ESTree.Node[], comments: comments as readonly Comment[] }
  modules.set(path, module)
  return module
}

/** Reads all public exports from package.json and the sources. */
export function readEntryPoints(): readonly EntryPoint[] {
  const { name, exports } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as {
    name: string
    exports: Record<string, string | { default?: string }>
  }
  return Object.entries(exports).flatMap(([path, target]) => {
    if (typeof target === 'string' || target.default === undefined) return []
    const file = target.default.replace('./dist/', 'src/').replace(/\.js$/, '.ts')
    if (!existsSync(root + file)) throw new Error(`${path} of package.json has no source ${file}.`)
    return [{ specifier: posix.join(name, path), file, exports: [...listExports(file).values()].sort(byKindAndName) }]
  })
}

const byKindAndName = (a: PublicExport, b: PublicExport): number =>
  a.kind === b.kind ? (a.name < b.name ? -1 : 1) : a.kind === 'value' ? -1 : 1

function listExports(path: string): ReadonlyMap<string, PublicExport> {
  const module = readModule(path)
  const found = new Map<string, PublicExport>()
  const add = (name: string, from: PublicExport | undefined) => {
    if (from === undefined) throw new Error(`${path} exports ${name}, which scripts/docs/library.ts cannot find.`)
    found.set(name, { ...from, name })
  }
  for (const node of module.body) {
    if (node.type === 'ExportAllDeclaration') {
      for (const [name, each] of listExports(resolve(path, node.source.value))) found.set(name, each)
    }
    if (node.type !== 'ExportNamedDeclaration') continue
    if (node.declaration !== null)
      for (const name of declaredNames(node.declaration)) add(name, findDeclaration(path, name))
    for (const specifier of node.specifiers) {
      const [local, exported] = [nameOf(specifier.local), nameOf(specifier.exported)]
      const origin = node.source === null ? path : resolve(path, node.source.value)
      add(exported, node.source === null ? findDeclaration(origin, local) : listExports(origin).get(local))
    }
  }
  return found
}

const resolve = (from: string, specifier: string): string => posix.join(posix.dirname(from), specifier)
const nameOf = (node: { type: string; name?: string; value?: unknown }): string => node.name ?? String(node.value)

function declaredNames(node: ESTree.Node): readonly string[] {
  if (node.type === 'VariableDeclaration')
    return node.declarations.map(({ id }) => ('name' in id && typeof id.name === 'string' ? id.name : ''))
  return 'id' in node && node.id !== null && 'name' in node.id ? [String(node.id.name)] : []
}

/** Finds the declaration of a name in a module, or in the module it is imported from. */
function findDeclaration(path: string, name: string): PublicExport | undefined {
  const module = readModule(path)
  const found: { node: ESTree.Node; outer: ESTree.Node }[] = []
  for (const outer of module.body) {
    if (outer.type === 'ImportDeclaration' && outer.source.value.startsWith('.')) {
      const imported = outer.specifiers.find((specifier) => specifier.local.name === name)
      if (imported?.type === 'ImportSpecifier')
        return listExports(resolve(path, outer.source.value)).get(nameOf(imported.imported))
    }
    const node = outer.type === 'ExportNamedDeclaration' && outer.declaration !== null ? outer.declaration : outer
    if (declaredNames(node).includes(name)) found.push({ node, outer })
  }
  const [first] = found
  if (first === undefined) return undefined
  const overloads = found.filter(({ node }) => node.type === 'TSDeclareFunction')
  return {
    name,
    file: path,
    kind: /^TS(?:TypeAlias|Interface)/.test(first.node.type) ? 'type' : 'value',
    declaration: (overloads.length > 0 ? overloads : [first])
      .map(({ node }) => renderDeclaration(module, node, name))
      .join('\n'),
    doc: readDoc(module, first.outer.start),
  }
}

/** Text of the doc comment that ends just before an offset, without tags other than `@throws`. */
function readDoc({ text, comments }: Module, start: number): string {
  const comment = comments.findLast(({ end }) => end <= start && text.slice(end, start).trim() === '')
  if (comment === undefined || !comment.value.startsWith('*')) return ''
  const lines = comment.value
    .slice(1)
    .split('\n')
    .map((line) => line.replace(/^\s*\* ?/, '').trimEnd())
  const full = lines.join('\n').trim()
  return full
    .split(/^(?=@)/m)
    .flatMap((part) =>
      part.startsWith('@throws')
        ? [`Throws ${part.replace(/^@throws\s+(?:\{MemoryError\}|MemoryError)?\s*/, '')}`]
        : part.startsWith('@')
          ? []
          : [part],
    )
    .map((part) => part.trim().replaceAll(/(?<!\n)\n(?!\n)/g, ' '))
    .join('\n\n')
}

function renderDeclaration(module: Module, node: ESTree.Node, name: string): string {
  const slice = (start: number, end: number): string => module.text.slice(start, end).trim()
  switch (node.type) {
    case 'FunctionDeclaration':
    case 'TSDeclareFunction':
      return `${slice(node.start, node.body?.start ?? node.end)}`.replace(/^async /, '')
    case 'ClassDeclaration':
      return renderClass(module, node)
    case 'VariableDeclaration': {
      const one = node.declarations.find(({ id }) => 'name' in id && id.name === name)
      const annotation = one?.id.typeAnnotation
      if (one !== undefined && annotation != null) return `const ${name}${slice(annotation.start, annotation.end)}`
      const value = one?.init
      if (value?.type === 'ArrowFunctionExpression') {
        const end = value.returnType?.end ?? value.body.start
        return `function ${name}${slice(value.start, end)}`
      }
      if (value?.type === 'NewExpression') return `const ${name}: ${slice(value.callee.start, value.callee.end)}`
      return slice(node.start, node.end)
    }
    default:
      return slice(node.start, node.end)
  }
}

/** Renders the public members of a class with their doc comments. */
function renderClass(module: Module, node: ESTree.Class): string {
  const members = node.body.body.flatMap((member) => {
    if (member.type !== 'MethodDefinition' && member.type !== 'PropertyDefinition') return []
    if (member.key.type === 'PrivateIdentifier') return []
    if (member.accessibility === 'private' || (member.type === 'MethodDefinition' && isImplementation(node, member)))
      return []
    const body = member.value !== null && 'body' in member.value ? member.value.body : null
    const end =
      body?.start ?? (member.type === 'PropertyDefinition' ? (member.typeAnnotation?.end ?? member.end) : member.end)
    const text = module.text
      .slice(member.start, end)
      .trim()
      .replace(/^(override )?async /, '$1')
    const comment = module.comments.findLast(
      (each) => each.end <= member.start && module.text.slice(each.end, member.start).trim() === '',
    )
    return [`${comment?.value.startsWith('*') ? `  /*${comment.value}*/\n` : ''}  ${text}`]
  })
  return `${module.text.slice(node.start, node.body.start).trim()} {\n${members.join('\n')}\n}`
}

/** True for the implementation of an overloaded method, which callers do not see. */
const isImplementation = (node: ESTree.Class, member: ESTree.MethodDefinition): boolean =>
  member.value.type === 'FunctionExpression' &&
  node.body.body.some(
    (other) =>
      other.type === 'MethodDefinition' &&
      other !== member &&
      other.value.type === 'TSEmptyBodyFunctionExpression' &&
      'name' in other.key &&
      'name' in member.key &&
      other.key.name === member.key.name,
  )

const introduction = `# Library reference

Every export of the package, by entry point. \`npm run docs\` generates this page from the sources.
[Errors](errors.md) lists the codes of \`MemoryError\`, [Profiles](profiles.md) explains all fields of a profile, and
[the app developer's guide](../guides/app-developer.md) shows how the parts are used.
`

/** Renders the reference of all exports as Markdown. */
export function renderLibrary(entries: readonly EntryPoint[]): string {
  const places = new Map<string, string>()
  const pages = entries.map(({ specifier, exports }) => {
    const own: string[] = []
    const elsewhere: string[] = []
    for (const { name, file, declaration, doc } of exports) {
      const place = places.get(`${file} ${name}`)
      if (place === undefined) {
        places.set(`${file} ${name}`, `#${toAnchor(`${specifier} › ${name}`)}`)
        own.push(`### ${specifier} › \`${name}\`\n\n${doc}\n\n\`\`\`ts\n${declaration}\n\`\`\`\n`)
      } else elsewhere.push(`[\`${name}\`](${place})`)
    }
    const also = elsewhere.length > 0 ? [`Also exports ${elsewhere.join(', ')}.\n`] : []
    return [`## ${specifier}\n`, ...also, ...own].join('\n')
  })
  const list = entries.map(
    ({ specifier, exports }) => `- [\`${specifier}\`](#${toAnchor(specifier)}): ${exports.length} exports`,
  )
  return `${[introduction, `${list.join('\n')}\n`, ...pages].join('\n').trimEnd()}\n`
}

/** Anchor that GitHub gives to a heading. */
export const toAnchor = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\p{M}\p{Pc}\- ]/gu, '')
    .replaceAll(' ', '-')
