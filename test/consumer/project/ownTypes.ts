// Uses every entry point with types, without the SDKs, so that the compiler can check all declarations of the package.
import { type Band, type Claim, openMemory, type Profile, profiles, type RenderStep } from 'threadkeep'
import { UnifiedAIService } from 'threadkeep/ai-service'
import { openMemory as openInBrowser } from 'threadkeep/browser'
import { createEmbeddingQueue } from 'threadkeep/embedding'
import { encryptedStore } from 'threadkeep/encrypted'
import { createLifecycle } from 'threadkeep/lifecycle'
import { PersistentSessions } from 'threadkeep/persistent-sessions'
import { ramStore } from 'threadkeep/ram'
import { replayer } from 'threadkeep/replay'
import { createSecretMasker } from 'threadkeep/secrets'
import { SessionMemory } from 'threadkeep/session-memory'
import { sqliteStore } from 'threadkeep/sqlite'
import { createUpkeep } from 'threadkeep/upkeep'

const renderings: readonly RenderStep[] = [{ as: 'whole' }]
const claim: Claim = { kind: 'fact' }
export const band: Band = { name: 'facts', claim, renderings, renderAs: 'block', priority: 1, maxTokens: 400 }
export const profile: Profile = { ...profiles.thread, name: 'facts first', bands: [band, ...profiles.thread.bands] }
export const memory = openMemory({ profile })
export const inBrowser = openInBrowser({
  store: ramStore(),
  embedding: createEmbeddingQueue,
  lifecycle: createLifecycle(),
  masker: createSecretMasker,
  replayer,
  upkeep: createUpkeep(),
})
export const others = [UnifiedAIService, encryptedStore, PersistentSessions, SessionMemory, sqliteStore]
