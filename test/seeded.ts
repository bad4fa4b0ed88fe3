import fc from 'fast-check'
import { seed } from './context/campaign.ts'

// A fixed seed gives the same cases in every run; a campaign uses random seeds to find new ones.
fc.configureGlobal({ seed })
