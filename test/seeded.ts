import fc from 'fast-check'
import { seed } from './context/campaign.ts'

// The same cases each time, so that a change is judged by what it changes; a campaign is there to find new ones.
fc.configureGlobal({ seed })
