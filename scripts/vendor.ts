import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, extname, join } from 'node:path'
import { type Plugin, rolldown } from 'rolldown'

type Manifest = {
  readonly name?: string
  readonly version?: string
  readonly license?: string
  readonly type?: string
}

/** Builds third-party packages into the output, with a file of their licenses. */
export function createVendorPlugin(): Plugin {
  const modules = new Set<string>()
  return {
    name: 'vendor',

    // Modules that require each other in a circle cannot be separate files: each CommonJS module that an ES module
    // imports becomes one file with everything it requires.
    async load(id) {
      if (!isThirdParty(id) || !isCommonJs(id)) return undefined
      const bundle = await rolldown({ input: id, platform: 'node', logLevel: 'silent' })
      const { output } = await bundle.generate({ format: 'cjs', codeSplitting: false })
      for (const module of output[0].moduleIds) modules.add(module)
      return output[0].code
    },

    generateBundle(_, files) {
      for (const file of Object.values(files))
        if (file.type === 'chunk') for (const module of file.moduleIds) modules.add(module)
      const folders = new Set([...modules].filter(isThirdParty).map(findPackageFolder))
      const licenses = [...folders].sort().map(describeLicense)
      this.emitFile({
        type: 'asset',
        fileName: 'vendor/LICENSES.txt',
        source: licenses.join(`\n${'-'.repeat(80)}\n\n`),
      })
    },
  }
}

const isThirdParty = (id: string): boolean => id.startsWith('/') && id.includes('/node_modules/')

const findPackageFolder = (file: string): string => /.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? file

function readManifest(folder: string): Manifest | undefined {
  const file = join(folder, 'package.json')
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Manifest) : undefined
}

function isCommonJs(file: string): boolean {
  if (extname(file) !== '.js') return extname(file) === '.cjs'
  let folder = dirname(file)
  let manifest = readManifest(folder)
  while (manifest === undefined) {
    folder = dirname(folder)
    manifest = readManifest(folder)
  }
  return manifest.type !== 'module'
}

function describeLicense(folder: string): string {
  const { name, version, license } = readManifest(folder) ?? {}
  const files = readdirSync(folder).filter((file) => /^(?:licen[cs]e|copying|notice)/i.test(file))
  if (license === undefined && files.length === 0) throw new Error(`The package ${name} has no license.`)
  const texts = files.map((file) => readFileSync(join(folder, file), 'utf8').trim())
  return `${[`${name} ${version}, ${license ?? 'see below'}`, ...texts].join('\n\n')}\n`
}
