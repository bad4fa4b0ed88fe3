// Prefix stability: the share of each prompt that is a common prefix with the previous one and thus cacheable, weighted
// by tokens.
import { printMetric } from './datasets.ts'

await printMetric('prefix', ['thread'])
