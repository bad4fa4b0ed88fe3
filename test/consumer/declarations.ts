import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/** Declarations of a module by name, and the modules that other names come from. */
type Module = {
  readonly texts: ReadonlyMap<string, string>
  readonly origins: ReadonlyMap<string, Origin>
  readonly exports: readonly string[]
}
type Origin = { readonly path: string; readonly name: string }

/**
 * Lists types that the declarations exported by a built entry point mention and that it does not export, as
 * `Mentioned in Exported`. Types that are local to a module do not count.
 */
export function listUnexportedTypes(entry: string): readonly string[] {
  const exports = readExports(entry)
  const exportedNames = new Set([...exports.values()].map(({ path, name }) => `${path} ${name}`))
  const missing: string[] = []
  for (const [publicName, { path, name }] of exports) {
    const { texts, origins } = readModule(path)
    for (const mentioned of new Set(texts.get(name)?.match(/\b[A-Z]\w+/g))) {
      const origin = origins.get(mentioned) ?? (texts.has(mentioned) ? { path, name: mentioned } : undefined)
      if (origin === undefined || exportedNames.has(`${origin.path} ${origin.name}`)) continue
      if (!readModule(origin.path).exports.includes(origin.name)) continue
      missing.push(`${mentioned} in ${publicName}`)
    }
  }
  return missing.sort()
}

/** Exported names of an entry point and their declarations. */
function readExports(path: string): ReadonlyMap<string, Origin> {
  const { texts, origins, exports } = readModule(path)
  return new Map(
    exports.flatMap((name) => {
      const origin = origins.get(name) ?? (texts.has(name) ? { path, name } : undefined)
      return origin === undefined ? [] : [[name, origin] as const]
    }),
  )
}

const modules = new Map<string, Module>()

function readModule(path: string): Module {
  const known = modules.get(path)
  if (known !== undefined) return known
  const text = readFileSync(path, 'utf8').replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, '')
  const origins = new Map<string, Origin>()
  for (const [, names = '', specifier = ''] of text.matchAll(/import \{([^}]*)\} from "(\.[^"]*)"/g))
    for (const item of names.split(',')) {
      const [name = '', local = name] = item.trim().split(' as ')
      origins.set(local, { path: resolve(dirname(path), specifier.replace(/\.js$/, '.d.ts')), name })
    }
  const texts = new Map<string, string>()
  const declarations = text
    .split(/^(?=(?:export )?(?:declare )?(?:type|interface|class|const|function|let) )/m)
    .slice(1)
  for (const declaration of declarations) {
    const name = /(?:type|interface|class|const|function|let) (\w+)/.exec(declaration)?.[1] ?? ''
    // A module ends with its exports; private members of classes have no types.
    const signature = declaration.replace(/^export \{[\s\S]*/m, '').replace(/"[^"]*"|'[^']*'/g, '')
    texts.set(name, (texts.get(name) ?? '') + signature)
  }
  const exportList = /^export \{([^}]*)\};?\s*$/m.exec(text)?.[1] ?? ''
  const exports = exportList.split(',').map((item) => item.replace('type ', '').trim())
  const module = { texts, origins, exports }
  modules.set(path, module)
  return module
}
