/** A part of the source whose tests are themselves tested, and the test files that must notice a change in it. */
export type MutationArea = {
  readonly mutate: readonly string[]
  /** Fast tests that exercise the files, the fastest first; every mutant runs those that cover it until one fails. */
  readonly tests: readonly string[]
}

const areas = {
  keys: {
    mutate: ['src/domain/key.ts', 'src/domain/keyed.ts'],
    tests: ['test/domain/{key,keyed}.test.ts', 'test/lifecycle/auxiliaryKeys.test.ts'],
  },
  isolation: {
    mutate: ['src/server/auth/{credential,identity}.ts', 'src/server/http/requestContext.ts', 'src/mcp/principal.ts'],
    tests: [
      'test/server/auth/{credential,credentials,identity}.test.ts',
      'test/server/http/requestContext.test.ts',
      'test/mcp/principal.test.ts',
    ],
  },
  allocator: {
    mutate: ['src/context/{allocateBudget,claimLimits,allocation}.ts'],
    tests: ['test/context/{allocateBudget,allocateTurn,claimLimits}.test.ts', 'test/adapters/session-memory.test.ts'],
  },
  erasure: {
    mutate: ['src/memory/forget.ts', 'src/upkeep/rederive.ts'],
    tests: ['test/memory/{forgetOperation,forget,replace,table}.test.ts', 'test/upkeep/rederive.test.ts'],
  },
  masking: {
    // The rule tables in `src/text/secrets/` are left out: their expressions alone make thousands of mutants, and
    // `test/text/secretMisses.test.ts` proves them with generated forms of every kind of secret.
    mutate: [
      'src/memory/{secretMasker,secretScan,secretLabels,secretRanges,maskableMessage,secretValues}.ts',
      'src/graph/maskedGraph.ts',
      'src/portable/maskRecords.ts',
      'src/text/secrets.ts',
    ],
    tests: [
      'test/text/{unusualSigns,secretMasks}.test.ts',
      'test/memory/{jsonSecrets,sessionSecrets,secretRanges,secretMasker,secretScan}.test.ts',
      'test/graph/{maskedGraph,maskedCalls}.test.ts',
      'test/portable/maskRecords.test.ts',
      'test/files/maskedDocuments.test.ts',
    ],
  },
  crypto: {
    mutate: ['src/stores/encrypted/**/*.ts', 'src/stores/sqlite/encryption.ts'],
    tests: [
      'test/stores/encrypted/{ciphers,fileKeys,format,rows,sessions,tampering}.test.ts',
      'test/stores/encrypted/{loadKeyring,rotateKeys,vectors}.test.ts',
      'test/stores/encrypted.test.ts',
    ],
  },
  import: {
    mutate: ['src/portable/{import,read,measure,chain,signature,compare,sessionWriter}.ts'],
    tests: [
      'test/portable/{read,import,measure}.test.ts',
      'test/portable/importSessions.test.ts',
      'test/portable/importGraph.test.ts',
      'test/portable/rowRecords.test.ts',
    ],
  },
  // Part of `import`: each mutant of its constants loads all modules again, which takes long with the tests of imports.
  importRecords: { mutate: ['src/portable/records.ts'], tests: ['test/portable/records.test.ts'] },
} as const satisfies Record<string, MutationArea>

type AreaName = keyof typeof areas

export const areaNames = Object.keys(areas) as AreaName[]

/** Returns an area by its name, or an error that lists the names. */
export function findArea(name: string): MutationArea {
  const area = areaNames.find((known) => known === name)
  if (area === undefined) throw new Error(`Unknown area "${name}". Use one of: ${areaNames.join(', ')}.`)
  return areas[area]
}
