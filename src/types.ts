// Types that the entry points for Node and for browsers share: all that their signatures mention.
export type { SharedEntries } from './context/gatherCandidates.ts'
export type { Difference, Trace } from './context/replay.ts'
export type {
  BundleEncryption,
  BundleTotals,
  ExistingSessionPolicy,
  ExportOptions,
  ImportOptions,
  ImportResult,
  TransferOptions,
  TransferProgress,
} from './domain/bundle.ts'
export type { ContentPart, MessageInput, ParsedMessage, ToolCallInput } from './domain/chat.ts'
export type {
  DerivedEntry,
  EncryptedEntry,
  Entry,
  Fact,
  Item,
  Json,
  Knowledge,
  KnowledgeOrigin,
  Message,
  Millis,
  NewMessage,
  Role,
  SequenceRange,
  SessionMetadata,
  Source,
  Summary,
  Tokens,
  ToolCall,
  TuningParameters,
  TuningRun,
  TuningState,
  UpkeepNotes,
} from './domain/entry.ts'
export type { ErrorCode } from './domain/error.ts'
export type { FileMaintenance, LongReads } from './domain/fileMaintenance.ts'
export type { Key, Scope } from './domain/key.ts'
export type { KnowledgeCategory } from './domain/knowledge.ts'
export type {
  AiSdkContext,
  AnthropicContext,
  Context,
  Degradation,
  DegradationNotice,
  Ledger,
  LedgerLine,
  OpenAIContext,
  Origin,
  Provider,
  Verdict,
} from './domain/ledger.ts'
export type { Payload } from './domain/payload.ts'
export type {
  AuxiliaryRecord,
  Clock,
  Embedder,
  EntryVector,
  EraseFilter,
  EraseListener,
  GraphStorage,
  IndexChanges,
  IndexHit,
  IndexQuery,
  Keyring,
  LanguageDetector,
  Languages,
  MasterKey,
  MemoryLimit,
  Model,
  ModelRequest,
  ModelUsage,
  PageOptions,
  RecordRange,
  RelatedStem,
  RowRange,
  SearchIndex,
  SearchTarget,
  SessionCounter,
  SessionFilter,
  SharedTime,
  SqlSession,
  Store,
  StoreCapabilities,
  StoreDatabase,
  StoredRecord,
  StoredVector,
  StoreFile,
  StoreTable,
  TableKey,
  TableRow,
  TableWrite,
  TermExtractor,
  TokenBuckets,
  Tokenizer,
  UnembeddedPage,
  Vector,
  VectorList,
  WeightedTerm,
  WordTable,
} from './domain/ports.ts'
export type {
  Band,
  Claim,
  Framing,
  KnowledgePolicy,
  Lifetime,
  Permission,
  Profile,
  RenderStep,
  RuleCondition,
  SummaryWordRanges,
  Tail,
  TokenizerName,
  UpkeepRule,
  UpkeepTask,
} from './domain/profile.ts'
export type {
  AiSdkAssistantPart,
  AiSdkInstruction,
  AiSdkMessage,
  AiSdkToolResult,
  AiSdkUserPart,
  AnthropicBlock,
  AnthropicMessage,
  ChatMessage,
  ChatToolCall,
  OpenAIContentPart,
  OpenAIMessage,
  OpenAIToolCall,
} from './domain/sdkMessages.ts'
export type {
  AppendPlan,
  Gap,
  MetadataFilter,
  Replacement,
  SessionChange,
  SessionHead,
  SessionListItem,
} from './domain/session.ts'
export type { Pause } from './domain/work.ts'
export type { OnSessionEnd, SessionEnd, SessionEndMeta, SessionEndReason } from './lifecycle/endEvent.ts'
export type { Lifecycle, LifecycleDeps, LifecycleOptions } from './lifecycle/lifecycle.ts'
export type { SessionMetadataUpdate } from './lifecycle/metadata.ts'
export type { AppendOptions } from './memory/append.ts'
export type { ContextBuilder, ContextOptions } from './memory/contextBuilder.ts'
export type { CreateEmbeddingQueue, EmbeddingCounts, EmbeddingProgress } from './memory/embedding.ts'
export type { ForgetOptions, ForgetResult, Rederive } from './memory/forget.ts'
export type { ForgetTarget } from './memory/forgetTarget.ts'
export type { KnowledgeInput } from './memory/knowledge.ts'
export type { SessionSummary, SessionsOptions } from './memory/listSessions.ts'
export type { MemoryDeps } from './memory/memoryDeps.ts'
export type { ReplaceOptions } from './memory/replace.ts'
export type { Replayer, ReplayResult } from './memory/replay.ts'
export type { SearchOptions, SearchQuery, SearchResult } from './memory/search.ts'
export type { SecretMasker } from './memory/secretMasker.ts'
export type { MemoryTable, RowListOptions, RowWriteOptions } from './memory/table.ts'
export type { TranscriptOptions } from './memory/transcript.ts'
export type { CreateSecretMasker, MemoryOptions } from './open.ts'
export type { ProfileName } from './profiles/index.ts'
export type { TextAnalysis } from './search/scopeIndex.ts'
export type { AnchorKind } from './text/anchors.ts'
export type { TimeRange } from './text/calendar.ts'
export type { FactField } from './upkeep/extract/fields.ts'
export type { ModelCall } from './upkeep/modelCall.ts'
export type { OptimizerStatus } from './upkeep/optimizer/optimizer.ts'
export type { UpkeepStep, UpkeepTrigger } from './upkeep/plan.ts'
export type { MemoryRecord } from './upkeep/record.ts'
export type { FinishedStep, NewestMessage, UpkeepHealth } from './upkeep/scheduler.ts'
export type { RecordUpdate } from './upkeep/updateRecord.ts'
export type {
  KnowledgeListOptions,
  KnowledgeOwner,
  ModelChoice,
  SummaryLosses,
  Upkeep,
  UpkeepDeps,
  UpkeepOptions,
  UpkeepRunResult,
} from './upkeep/upkeep.ts'
export type { Loss } from './upkeep/verify.ts'
