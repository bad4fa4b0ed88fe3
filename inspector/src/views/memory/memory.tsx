import '../../styles/memory.css'
import { useApp } from '../../appContext.ts'
import { TextField } from '../../components/fields.tsx'
import { Tabs, View } from '../../components/layout.tsx'
import { EmptyState } from '../../components/states.tsx'
import { TenantLinks } from '../../components/tenantLinks.tsx'
import { formatRoute, navigate, type Route, replaceSettings } from '../../router.ts'
import { FactsTab } from './facts.tsx'
import { FilesTab } from './files.tsx'
import { GraphTab } from './graph.tsx'
import { KnowledgeTab } from './knowledge.tsx'
import { SummariesTab } from './summaries.tsx'

const sessionTabs = [
  ['facts', 'Facts'],
  ['summaries', 'Summaries'],
] as const
const scopeTabs = [
  ['knowledge', 'Knowledge'],
  ['files', 'Files'],
  ['graph', 'Graph'],
] as const
type TabName = (typeof sessionTabs)[number][0] | (typeof scopeTabs)[number][0]

/** Everything that is known beyond the messages: of a session, and of its tenant. */
export function MemoryView({ route }: { route: Route }) {
  const { access } = useApp()
  const [only = ''] = access.scopes.filter((name) => name !== '*')
  const key = route.subject === '' ? only : route.subject
  const scope = key.split(':')[0] ?? ''
  const isSession = key.includes(':')
  const tabs: readonly (readonly [TabName, string])[] = [...(isSession ? sessionTabs : []), ...scopeTabs]
  const tab = tabs.find(([name]) => name === route.settings.tab)?.[0] ?? (tabs[0]?.[0] as TabName)
  return (
    <View
      title="Memory"
      subtitle={isSession ? <a href={formatRoute('conversation', key)}>{key}</a> : key}
      actions={<SubjectForm subject={key} tab={tab} />}
    >
      {key === '' ? (
        <EmptyState title="Choose a tenant or a session">
          <p>Write its key above, such as acme or acme:ann.</p>
          <TenantLinks view="memory" />
        </EmptyState>
      ) : (
        <>
          <Tabs
            label="Kinds of memory"
            tabs={tabs}
            selected={tab}
            onSelect={(name) => replaceSettings({ tab: name })}
          />
          {tab === 'facts' && <FactsTab sessionKey={key} />}
          {tab === 'summaries' && <SummariesTab sessionKey={key} />}
          {tab === 'knowledge' && <KnowledgeTab scope={scope} person={route.settings.person ?? ''} />}
          {tab === 'files' && <FilesTab scope={scope} />}
          {tab === 'graph' && <GraphTab scope={scope} settings={route.settings} />}
        </>
      )}
    </View>
  )
}

const SubjectForm = ({ subject, tab }: { subject: string; tab: string }) => (
  <form
    class="header-form"
    onSubmit={(event) => {
      event.preventDefault()
      navigate(formatRoute('memory', String(new FormData(event.currentTarget).get('key')).trim(), { tab }))
    }}
  >
    <TextField label="Tenant or session" name="key" value={subject} placeholder="acme:ann" isRequired />
    <button type="submit" class="button">
      Show
    </button>
  </form>
)
