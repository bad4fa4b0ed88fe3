import { readdirSync, readFileSync } from 'node:fs'
import { root } from '../shape/source.ts'

/** Modules of the package by the name under which they are imported, such as `./sqlite`. */
export async function importEntryPoints(): Promise<ReadonlyMap<string, Readonly<Record<string, unknown>>>> {
  const { exports } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as {
    exports: Record<string, { readonly default: string } | string>
  }
  const modules = Object.entries(exports).flatMap(([name, target]) =>
    typeof target === 'string'
      ? []
      : [[name, target.default.replace('./dist/', 'src/').replace(/\.js$/, '.ts')] as const],
  )
  return new Map(
    await Promise.all(modules.map(async ([name, file]) => [name, await import(`${root}${file}`)] as const)),
  )
}

/** A function, constructor or method that callers of the package reach, with the types of its parameters. */
export type PublicSignature = { readonly name: string; readonly parameters: readonly string[] }

/** Lists all functions, constructors and methods that the entry points export, by their source code. */
export async function listPublicSignatures(): Promise<readonly PublicSignature[]> {
  const sources = readdirSync(`${root}src`, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => readFileSync(`${root}src/${file}`, 'utf8'))
  const exported = new Map<string, unknown>()
  for (const [entry, module] of await importEntryPoints())
    for (const [name, value] of Object.entries(module)) {
      const isOther = exported.has(name) && exported.get(name) !== value
      exported.set(isOther ? `${name} of ${entry}` : name, value)
    }
  return [...exported].flatMap(([name, value]) => signaturesOf(name, value, [...exported.values()], sources))
}

function signaturesOf(
  name: string,
  value: unknown,
  exported: readonly unknown[],
  sources: readonly string[],
): readonly PublicSignature[] {
  if (typeof value === 'object' && value !== null) {
    // An instance has the methods of its class.
    if (exported.includes(value.constructor)) return []
    return Object.entries(value)
      .filter(([, member]) => typeof member === 'function')
      .map(([member]) => ({ name: `${name}.${member}`, parameters: ['an object'] }))
  }
  if (typeof value !== 'function') return []
  const declaration = new RegExp(String.raw`^export (?:abstract )?class ${name}\b[^\n]*\n(?<body>[^]*?)^\}`, 'm')
  const body = sources.map((source) => declaration.exec(source)?.groups?.body).find((text) => text !== undefined)
  if (body === undefined) return [{ name, parameters: readFunction(name, sources) }]
  const methods = Object.getOwnPropertyNames(value.prototype).filter(
    (method) => typeof Object.getOwnPropertyDescriptor(value.prototype, method)?.value === 'function',
  )
  return methods.flatMap((method) => {
    const start = new RegExp(String.raw`^  (private )?(?:async )?\*?${method}(?:<[^>]*>)?\(`, 'm').exec(body)
    if (start?.[1] !== undefined) return []
    const parameters = start === null ? [] : readParameters(body, start.index + start[0].length)
    return [{ name: method === 'constructor' ? name : `${name}.${method}`, parameters }]
  })
}

/** Reads the parameters of all functions with this name: two entry points may have one each. */
function readFunction(name: string, sources: readonly string[]): readonly string[] {
  const plainName = name.replace(/ of .*/, '')
  const declaration = new RegExp(
    String.raw`^export (?:(?:async )?function\*? ${plainName}(?:<[^>]*>)?|const ${plainName}(?:: \w+)? = (?:async )?)\(`,
    'm',
  )
  const found = sources.flatMap((source) => {
    const start = declaration.exec(source)
    return start === null ? [] : [readParameters(source, start.index + start[0].length)]
  })
  return found.length === 0 ? ['of unknown types'] : found.flat()
}

/** Reads the types of parameters from their beginning up to the closing bracket. */
function readParameters(source: string, from: number): readonly string[] {
  const parameters = ['']
  let depth = 0
  for (let at = from; at < source.length; at++) {
    const sign = source[at] as string
    const isArrow = sign === '>' && source[at - 1] === '='
    if ('([{<'.includes(sign)) depth++
    if (')]}>'.includes(sign) && !isArrow && --depth < 0) break
    if (sign === ',' && depth === 0) parameters.push('')
    else parameters.push(`${parameters.pop()}${sign}`)
  }
  return parameters.map((text) => text.replaceAll(/\s+/g, ' ').trim()).filter((text) => text !== '')
}
