#!/usr/bin/env python3
"""Writes a set of questions by relation over a vault of people, companies, meetings, deals and projects.

Usage: relations_2.py FOLDER. The output is always the same. The notes and the wordings are other ones than those of
relations_1.py. Beside the set it writes facts.tsv (each fact, how a note states it, and in which), traps.tsv (what a
note only seems to state) and queries-meta.tsv (what each question asks).
"""
# Words and sentences of the notes.
PEOPLE = """Maya Lindqvist f|Jonas Weidner m|Anna Berg f|Anna Bergman f|Tom Hartley m|Thomas Hartnell m|Priya Raman f|Luis Ortega m|Grace Okafor f|Daniel Cho m|Daniela Choi f|Ruth Abelson f|Martin Sykes m|Elena Petrova f|Helena Petrov f|Samir Haddad m|Ines Carvalho f|Peter Nolan m|Petra Novak f|Chris Dunmore m|Aisha Bello f|Victor Lang m|Wei Zhang f|Owen Pritchard m|Clara Moretti f|Ben Aldous m|Nadia Rahman f|Felix Brandt m|Sophie Laurent f|Ravi Menon m|Hannah Stroud f|Mateo Silva m|Ingrid Solberg f|Patrick Boyle m|Yuki Tanaka f|Omar Farouk m|Julia Kessler f|Julian Kessel m|Leah Goldman f|Dev Kapoor m|Freya Nilsen f|George Tully m|Marta Kowalska f|Hugo Lemaire m|Tessa Vaughn f|Andre Baptiste m|Bianca Russo f|Kofi Mensah m|Laura Finch f|Simon Ashdown m|Noor Siddiqui f|Erik Dahl m|Erica Dahlman f|Paul Greaves m|Zoe Papadakis f|Ian McTavish m|Camille Roche f|Stefan Bauer m|Rosa Delgado f|Henry Okoro m|Alice Winthrop f|Kenji Mori m|Valerie Stone f|Marcus Reid m|Mark Reid m|Olga Ivanova f|Joel Sandberg m|Fatima Zahra f|Nick Castellan m|Bridget Malloy f|Arjun Sethi m|Caroline Webb f|Diego Fuentes m|Emma Thornley f|Lars Holm m|Miriam Katz f|Gareth Pugh m|Susan Ito f|Tariq Aziz m|Vera Lindholm f|William Crane m|Xenia Marks f|Youssef Karam m|Ada Fairweather f|Colin Brace m|Dina Shapiro f|Edgar Voss m|Fiona Macrae f|Gustav Ek m|Heidi Brenner f"""
COMPANIES = """Harrow & Finch;retail|Corvid Analytics;data|Lumen Freight;logistics|Lumen Health;health|Northgate Systems;IT services|Brindle Foods;food|Kestrel Robotics;robotics|Palisade Security;security|Oakline Insurance;insurance|Tern Mobility;mobility|Saltmarsh Energy;energy|Helio Grid;energy|Quarry Bank;banking|Vantage Clinics;health|Marlowe Media;media|Fathom Labs;data|Bluepine Software;software|Driftwood Games;games|Sable Payments;fintech|Cobalt Rail;logistics|Wren Education;education|Halyard Marine;energy|Ironbark Mining Tech;robotics|Juniper Row;data|Peregrine Air Cargo;logistics|Mosaic Dental;health|Atlas Paper;retail|Ember Kitchens;food|Clearbrook Water;utilities|Foxglove Bio;health|Tallow & Wick;retail|Arden Legal;legal|Pinnacle Fleet;logistics|Redwing Studios;media|Stonebridge Homes;property|Nimbus Telecom;telecom|Cedarwood Care;health|Birch Street Coffee;food|Orrery Space;telecom|Lanternworks;software|Ashford Group;conglomerate|Meridian Holdings;conglomerate|Northgate Capital;fund|Thistle Ventures;fund|Greyfriars Partners;fund|Longacre Fund;fund|Pontoon Capital;fund|Second Harbour;fund|Maple & Main;fund|Alder Seed;fund"""
CITIES = ["London","Berlin","Lisbon","Dublin","Toronto","Amsterdam","Oslo","Manchester"]
SIZES = {"Harrow & Finch":3,"Corvid Analytics":5,"Lumen Freight":4,"Lumen Health":4,"Northgate Systems":5,"Brindle Foods":1,"Kestrel Robotics":4,"Palisade Security":1,"Oakline Insurance":3,"Tern Mobility":3,"Saltmarsh Energy":2,"Helio Grid":3,"Quarry Bank":3,"Vantage Clinics":3,"Marlowe Media":2,"Fathom Labs":4,"Bluepine Software":2,"Driftwood Games":3,"Sable Payments":3,"Cobalt Rail":1,"Wren Education":2,"Ironbark Mining Tech":1,"Juniper Row":1,"Foxglove Bio":3,"Redwing Studios":1,"Nimbus Telecom":3,"Orrery Space":2,"Lanternworks":1,"Ashford Group":2,"Meridian Holdings":2,"Northgate Capital":2,"Thistle Ventures":2,"Greyfriars Partners":1,"Longacre Fund":1,"Pontoon Capital":1,"Alder Seed":1}
PARENT = """Ember Kitchens>Ashford Group|Birch Street Coffee>Ashford Group|Tallow & Wick>Ashford Group|Brindle Foods>Ashford Group|Cobalt Rail>Meridian Holdings|Clearbrook Water>Meridian Holdings|Stonebridge Homes>Meridian Holdings|Mosaic Dental>Vantage Clinics|Redwing Studios>Marlowe Media|Halyard Marine>Saltmarsh Energy|Lanternworks>Fathom Labs"""
# acquirer>target;deal codename when the deal note states it
ACQ = """Corvid Analytics>Juniper Row;|Kestrel Robotics>Ironbark Mining Tech;Project Anvil|Lumen Freight>Peregrine Air Cargo;|Lumen Freight>Pinnacle Fleet;Pinnacle Fleet acquisition|Northgate Systems>Palisade Security;|Northgate Systems>Bluepine Software;|Oakline Insurance>Arden Legal;Project Gavel|Nimbus Telecom>Orrery Space;|Lumen Health>Cedarwood Care;|Harrow & Finch>Atlas Paper;|Quarry Bank>Sable Payments;Project Ermine"""
ACQ_FAIL = """Vantage Clinics>Foxglove Bio;Project Digitalis|Marlowe Media>Driftwood Games;Driftwood buyout|Nimbus Telecom>Corvid Analytics;Project Rookery"""
STARTUPS = ["Corvid Analytics","Lumen Health","Kestrel Robotics","Tern Mobility","Helio Grid","Fathom Labs","Bluepine Software","Driftwood Games","Sable Payments","Wren Education","Foxglove Bio","Orrery Space","Juniper Row"]
LIBS = {
"ledgerkit":("double-entry bookkeeping toolkit used for the billing pages","Typed API on top, plain SQL underneath. The docs are thin but the examples folder is good."),
"ledger-core":("posting engine for accounts and balances","Small, boring, well tested. No UI and no reporting on purpose, that lives elsewhere."),
"tidewire":("message bus for the services","At-least-once delivery, so consumers have to be idempotent. Metrics are exported out of the box."),
"quillmark":("template engine for emails and PDFs","Mustache-like syntax with partials. Rendering a long invoice takes about 40 ms."),
"hopper":("background job runner","Retries with backoff, cron-style schedules and a small web page for failed jobs."),
"hopper-cli":("command line tool for queueing and inspecting jobs","Mostly used by support to rerun failed exports. Ships as a single binary."),
"saltbox":("cron wrapper from the early days","Still running on two old boxes. Nobody wants to touch the config format."),
"fernway":("routing service for delivery addresses","Geocodes, then batches stops per van. Handles around 30k addresses a day."),
"parcelite":("address matcher written during the pilot","Good enough for the pilot, but it never coped with Irish addresses."),
"gridstone":("geospatial index","Tile based, in memory, rebuilds in about a minute on the staging box."),
"mossdb":("embedded key-value store","Single writer, many readers. Backups are a file copy, which operations love."),
"brightcache":("in-process cache with tag invalidation","Defaults are sensible; the only gotcha is memory use with big values."),
"oxbow":("the queue everyone started on","No dead letter support, which is how we lost the March invoices."),
"ravelle":("report layout library","Tables are fine, charts are painful. Fonts have to be registered by hand."),
"pebblestore":("file based storage layer","Human-readable files, slow once there are more than a few thousand keys."),
}
DEPENDS = "ledgerkit>ledger-core ledgerkit>mossdb ledger-core>mossdb hopper>brightcache hopper>tidewire hopper-cli>hopper hopper-cli>quillmark saltbox>pebblestore saltbox>ledger-core fernway>tidewire fernway>gridstone parcelite>gridstone gridstone>mossdb ravelle>brightcache oxbow>pebblestore parcelite>brightcache fernway>ledger-core"
REPL = "tidewire>oxbow quillmark>ravelle mossdb>pebblestore fernway>parcelite hopper>saltbox"
TOPICS = """pricing review;price|hiring plan for spring;hire|data platform kickoff;tech|Series B prep;fund|reseller partnership call;partner|annual planning offsite;plan|warehouse rollout check-in;cust|contract redlines session;legal|renewal call;cust|security questionnaire walkthrough;legal|incident postmortem;tech|queue migration sync;tech|board prep session;fund|discount policy workshop;price|graduate programme chat;hire|roadmap session;plan|clinic pilot review;cust|co-marketing call;partner|data processing agreement call;legal|investor update dry run;fund|sales ops retro;plan|API design review;tech|storage benchmark review;tech|packaging cost review;price|interview debrief;hire|onboarding feedback call;cust|distribution terms call;partner|budget round one;plan|budget round two;plan|term sheet walkthrough;fund|customer advisory panel;cust|support backlog triage;tech|logistics partner lunch;partner|trademark call;legal|compensation bands review;hire|subscription tiers brainstorm;price|release readiness meeting;tech|quarterly business review;cust|channel strategy meeting;partner|due diligence kickoff;fund|due diligence readout;fund|office move planning;plan|lease negotiation call;legal|usage-based pricing session;price|engineering manager panel;hire|escalation call;cust|integration scoping call;tech|conference debrief;partner|breakfast roundtable;partner|team health check;plan|fleet telematics demo;cust|billing errors review;tech|recruiter intro;hire|insurance terms call;legal|grant application call;fund|storefront redesign feedback;cust|supplier summit;partner|margin deep dive;price|OKR check-in;plan|exit interview themes;hire"""
THEMES = {
"price":["Nobody is happy with the current price list, mostly because of the exceptions.","Agreed to test a 7% increase on new contracts only.","Discounts over 15% need a written reason from now on.","Long argument about whether to publish prices on the site.","The spreadsheet had last year's volumes in it, so the numbers need redoing.","Competitors moved first this time, which makes it easier."],
"hire":["Two open roles, one of them frozen until the new budget is in.","The take-home task takes candidates far too long, cut it to two hours.","Referrals are still the best source by some distance.","We keep losing people at the offer stage because we are slow.","Want a clearer rubric before the next round.","Salary ranges to be on every posting from next month."],
"tech":["Main risk is the data backfill, it has never been run at this size.","We will do it in two steps and keep the old path for a week.","Error budget for the month is already gone.","Someone needs to write down how the failover is supposed to work.","Load test numbers look fine up to about 4x current traffic.","Agreed that nothing ships on the Friday."],
"fund":["Deck is close, the market slide is still weak.","Need cleaner cohort numbers before anyone external sees this.","Runway is fourteen months on the current plan.","Expect questions on churn and on the founder vesting.","Data room to be opened in stages, financials last.","Legal costs are going to be higher than planned."],
"partner":["Nice conversation, but no clear owner on their side yet.","They want a joint webinar before they commit to anything bigger.","Revenue share is the sticking point, they opened at 30%.","Both sides to send three target accounts.","The logo page can go live as soon as marketing signs off.","Worth repeating in the autumn with a smaller group."],
"plan":["Three priorities instead of seven, which felt like progress.","Most of the time went on headcount again.","Parking lot is longer than the agenda was.","We need a decision on the second office by the end of the month.","Last quarter's goals were about 60% done.","Next time send the pre-read two days earlier."],
"cust":["They like the product, they do not like our invoices.","Two bugs came up again that we had promised to fix in June.","Usage is up, but only in one of the three teams.","They asked for single sign-on before rollout to the other sites.","Tone was friendly, much better than in the spring.","Send the summary and the revised timeline by Thursday."],
"legal":["Liability cap is the only real open point.","Their paper, our edits, third turn of the document.","They want ninety days for termination, we offered sixty.","Need the list of subprocessors before they can sign.","Governing law agreed, finally.","Wording in section 4 to be redone by our side."],
}
PFILL = ["Easy to talk to and quick on email.","Prefers a call to a long thread.","{He} has two kids and usually logs off by five.","Runs marathons, ask about the last one.","Met through the Thursday meetup years ago.","Sent {him} the book on negotiation, no reaction yet.","Good sense of humour, hates slide decks.","{He} is careful with promises but keeps them.","Usually away in August.","Vegetarian, remember for dinners.","{He} speaks French and a bit of Polish.","Asked for our onboarding checklist, I sent the short version.","Very well connected in the sector.","Send a note after the holidays.","Likes detail; bring numbers.","{He} asked good questions about how we price things.","Last spoke in the spring, owes me a reply.","Gave a talk on incident response that was really good.","Sceptical of AI tooling, at least out loud.","{He} cycles everywhere, even in winter.","Would be a good speaker for the autumn dinner.","Birthday is in early November.","{He} recommended the accountant we use now.","Keeps bees. Will talk about it.","Tends to answer late in the evening.","Happy to give references.","Moved house last year and is still complaining about the builders.","{He} is doing a part-time master's in statistics.","Thinks the market will stay flat for another year.","Can be blunt in groups, much warmer one to one.","Interested in board roles at some point.","{He} wants to hear about our hiring process.","Promised to send over the template contract.","Plays in a band, bass I think."]
PTASK = ["- [ ] Send the revised one-pager","- [ ] Catch up next month","- [ ] Ask about the conference in May","- [x] Connect on LinkedIn","- [ ] Share the salary survey","- [ ] Thank {him} for the intro","- [ ] Find out who runs procurement","- [ ] Birthday card","- [x] Send slides"]
CFILL = ["Revenue is somewhere around 12m, growing slowly.","Offices are nice, the coffee is not.","Decision making is slow; expect three rounds of approvals.","They redid the website in the spring and finally list prices.","Payment terms are 45 days and they use all of them.","Around 140 staff at last count.","They had a rough winter but the order book looks better now.","Strong brand locally, hardly known abroad.","Procurement runs through a portal that times out every ten minutes.","Good reputation as an employer.","Press coverage has been kind so far.","They care a lot about data residency.","Product is solid, sales team is young.","Fiscal year ends in June.","Their annual customer day is worth going to.","Heavy users of spreadsheets, still.","Two offices and a warehouse.","Margins are thin and they know it.","Usually book us for a workshop in the autumn."]
FFILL = ["Writes first cheques between 500k and 2m.","Slow to say no, which is annoying.","Likes founders with an industry background.","Quarterly letters are actually readable.","Second fund closed last year.","Hands-off after the first board year.","They share a building with two other funds.","Prefers to co-lead.","Portfolio support is one very good talent person."]
SECT = {"retail":"High street and online retailer","data":"Analytics company, sells dashboards and a data feed","logistics":"Freight and logistics operator","health":"Healthcare company","IT services":"IT services firm, mostly public sector work","food":"Food and hospitality business","robotics":"Builds autonomous machines for industrial sites","security":"Managed security provider","insurance":"Mid-size insurer for small businesses","mobility":"Shared mobility startup","energy":"Energy company","banking":"Regional bank","media":"Media and production house","software":"Software company for back-office teams","games":"Games studio","fintech":"Payments startup for small merchants","education":"Online courses for schools","utilities":"Water utility","legal":"Legal services for insurers","property":"House builder","telecom":"Telecoms and connectivity provider","conglomerate":"Holding company with a mixed bag of brands","fund":"Early stage investor"}
import sys, random, re, os, json, collections
R = random.Random(20240611)
if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
    sys.exit("usage: relations_2.py FOLDER")
OUT = sys.argv[1]
if os.path.exists(os.path.join(OUT, "notes")):
    sys.exit(f"{OUT} has notes already; name a new folder")
os.makedirs(OUT, exist_ok=True)
MONTHS = ["January","February","March","April","May","June","July","August","September","October","November","December"]

class Note:
    def __init__(s, id, typ, folder, title, g=None):
        s.id, s.type, s.folder, s.title, s.g = id, typ, folder, title, g
        s.fm = collections.OrderedDict(); s.lists = collections.OrderedDict()
        s.inline=[]; s.rels=[]; s.heads=collections.OrderedDict(); s.intro=[]; s.prose=[]; s.traps=[]; s.fill=[]; s.tail=[]
        s.aliases=[]; s.third=0; s.third_lines=[]; s.other_head="Notes"
    @property
    def first(s): return s.title.split()[0]
N = collections.OrderedDict(); BY = {}
def add(n): N[n.id]=n; BY[n.title]=n; return n

# ---------- entities
people=[];companies=[];meetings=[];libs=[];deals=[]
order=list(range(1,91)); R.shuffle(order)
for k,l in enumerate(PEOPLE.split("|")):
    name,g=l.rsplit(" ",1); people.append(add(Note("per-%03d"%order[k],"person","people",name,g)))
order=list(range(1,51)); R.shuffle(order)
for k,l in enumerate(COMPANIES.split("|")):
    name,sec=l.split(";"); n=add(Note("com-%03d"%order[k],"company","companies",name)); n.sector=sec; companies.append(n)
    n.hq=R.choice(CITIES)
    if sec=="fund": n.type="investor" if k%2 else "company"
order=list(range(1,61)); R.shuffle(order)
dates=[]
for k in range(60):
    y=2023 if k<28 else 2024; dates.append((y,1+(k*5+k//7)%12,1+(k*11)%27))
R.shuffle(dates)
for k,l in enumerate(TOPICS.split("|")):
    t,th=l.split(";"); d=dates[k]
    n=add(Note("mtg-%03d"%order[k],"meeting","meetings","%d-%02d-%02d %s"%(d[0],d[1],d[2],t[0].upper()+t[1:])))
    n.topic=t; n.theme=th; n.date=d; meetings.append(n); n.fm["date"]="%d-%02d-%02d"%d
order=list(range(1,16)); R.shuffle(order)
for k,(l,(d,x)) in enumerate(LIBS.items()):
    n=add(Note("lib-%03d"%order[k],"library" if k%3 else "project","projects",l)); n.desc=d; n.extra=x; libs.append(n)
for n in people: n.loc=R.choice(CITIES)
for n in companies:
    w=n.title.split()[0]
    if len(n.title.split())>1 and w not in("Northgate","Lumen","Second","Birch","Maple","Harrow","Tallow") and R.random()<.45: n.aliases=[w]

SH=lambda x:(R.shuffle(x),x)[1]
def link(n, prose=True):
    r=R.random()
    if n.aliases and prose and r<.45: return "[[%s|%s]]"%(n.title,n.aliases[0])
    if n.type=="person" and prose and r<.07: return "[[%s|%s]]"%(n.title,n.first)
    if n.type=="person" and r>.97: return "[[people/%s|%s]]"%(n.title,n.title)
    if n.type=="meeting" and prose and r<.5: return "[[%s|%s]]"%(n.title,"the "+n.topic)
    return "[[%s]]"%n.title
def join(ls): return ls[0] if len(ls)==1 else ", ".join(ls[:-1])+" and "+ls[-1]

# ---------- wording
# rel -> end -> form -> options.  end s: the note is the subject, o: the note is the object
T={
"works_at":{"s":{"frontmatter":["company","employer","organization","works_at","company"],"inline":["Company","works at","Employer"],"relations":["works_at","employed_by"],"heading":["Company","Works at","Current company"],
  "prose":["{s} works at {X} as {role}.","{Role} at {X}.","{He} is {role} at {X} these days.","Joined {X} in {y} as {role}.","Currently at {X}, where {he} is {role}.","{He} works for {X} ({bare})."]},
 "o":{"frontmatter":["employees","people","team"],"inline":["Employees","Staff","Team"],"relations":["employs"],"heading":["Employees","Team","People"],
  "prose":["{X} {works|work} here.","On their team: {X}.","{X} {is an employee|are employees} there.","{X} {is|are} on staff here now."]},
 "t":["{S} works at {O} as {role}, worth a call.","Ask {S}, {role} at {O}, for a second opinion.","{S} from {O} had a similar problem ({bare} there).","Spoke to {S} about this afterwards. Works at {O} now, as {role}.","Heard that {S} joined {O} as {role}.","Possible reference: {S} ({bare}, {O})."]},
"worked_at":{"s":{"frontmatter":["previous_company","previously","former_employer"],"inline":["Previously","Previous company","Formerly at"],"relations":["worked_at","previously_at","formerly_at"],"heading":["Previously","Past roles","Past jobs"],
  "prose":["Previously at {X}.","{He} used to work at {X}.","Before that {he} was at {X} for a few years.","Left {X} in {y}.","{He} spent four years at {X} before moving on.","Formerly {role2} at {X}."]},
 "o":{"frontmatter":["alumni","former_employees"],"inline":["Alumni","Former employees"],"relations":["formerly_employed","previously_employed"],"heading":["Former employees","Alumni","Left the company"],
  "prose":["{X} used to work here.","{X} left in {y}.","Former employees I know: {X}.","{X} worked here until {y}."]},
 "t":["{S} used to work at {O}, so knows how they buy.","{S} was at {O} before and warned us about the process.","{S} spent a few years at {O} and left in {y}.","Useful background from {S}, formerly of {O}.","{S} left {O} in {y}, no hard feelings."]},
"founded":{"s":{"frontmatter":["founded","founder_of"],"inline":["Founded","founder of"],"relations":["founded","founder_of","co_founded"],"heading":["Founded","Companies founded"],
  "prose":["{He} founded {X} in {y}.","Founder of {X}.","Co-founder of {X}.","{s} started {X} in {y} with almost no money.","{He} co-founded {X} straight out of university."]},
 "o":{"frontmatter":["founders","founded_by","founders"],"inline":["Founders","Founded by"],"relations":["founded_by"],"heading":["Founders"],
  "prose":["Founded by {X} in {y}.","{X} founded the company in {y}.","Started by {X} in a rented garage in {y}.","The {founder is|founders are} {X}."]},
 "t":["{S} founded {O} in {y}.","{S}, the founder of {O}, would be a good guest.","{S} started {O} in {y}, which people tend to forget.","Same story as {S}, who co-founded {O}."]},
"invested_in":{"s":{"frontmatter":["portfolio","investments","invested_in"],"inline":["Portfolio","Investments","invested in"],"relations":["invested_in"],"heading":["Portfolio","Investments"],
  "prose":["Invested in {X}.","Investor in {X}.","Backed {X} early on.","Put money into {X} in {y}.","Portfolio includes {X}."]},
 "o":{"frontmatter":["investors","backers","investors"],"inline":["Investors","Backed by"],"relations":["backed_by","funded_by","has_investor"],"heading":["Investors","Cap table"],
  "prose":["Backed by {X}.","{X} invested in the last round.","Investors: {X}.","They raised from {X} in {y}.","{X} {is an investor|are investors}."]},
 "t":["{S} invested in {O}."]},
"acquired":{"s":{"frontmatter":["acquired","acquisitions"],"inline":["Acquired","Acquisitions"],"relations":["acquired"],"heading":["Acquisitions"],
  "prose":["Acquired {X} in {y}.","Bought {X} in {y}, mostly for the team.","They acquired {X} two years ago."]},
 "o":{"frontmatter":["acquired_by"],"inline":["Acquired by"],"relations":["acquired_by"],"heading":["Acquired by"],
  "prose":["Acquired by {X} in {y}.","{X} bought the company in {y}.","Was bought by {X}, terms not public."]},
 "t":[]},
"attended":{"s":{"frontmatter":["meetings","attended"],"inline":["Attended","Meetings"],"relations":["attended"],"heading":["Meetings","Meetings attended"],
  "prose":["{He} attended {X}.","Was at {X}.","{He} joined us for {X}.","{s} came to {X}.","Sat in on {X}."]},
 "o":{"frontmatter":["attendees","participants","attendees"],"inline":["Attendees","Present","Participants"],"relations":["attended_by"],"heading":["Attendees","Participants","Present"],
  "prose":["{X} attended.","In the room: {X}.","Present: {X}.","{X} {was|were} there.","On the call: {X}.","{X} joined."]},
 "t":["{S} attended {O} and had taken good notes.","{S} was at {O}, so no need to repeat the background.","{S} joined {O} and wrote it up.","{S} attended {O} too and has the recording.","{S} was in the room for {O} and sent me a summary."]},
"met_with":{"s":{"frontmatter":["met_with","met"],"inline":["Met with","met"],"relations":["met_with","met"],"heading":["Met with","1:1s"],
  "prose":["{He} met with {X} in {month}.","{He} met {X} for lunch in {city}.","{He} met up with {X} in {month}.","{s} had coffee with {X} in {month}."]},
 "t":["{S} met with {O} in {month}, sounds like it went well.","{S} and {O} met for lunch in {city}.","{S} met {O} last week and is keen to continue.","{S} had coffee with {O} in {month}."]},
"depends_on":{"s":{"frontmatter":["depends_on","dependencies"],"inline":["Depends on","Requires","Dependencies"],"relations":["depends_on","requires","uses"],"heading":["Dependencies","Depends on"],
  "prose":["Depends on {X}.","Built on top of {X}.","It needs {X} to run.","Uses {X} under the hood."]},
 "o":{"frontmatter":["used_by","dependents"],"inline":["Used by","Required by"],"relations":["used_by","required_by"],"heading":["Used by","Dependents"],
  "prose":["{X} {depends|depend} on it.","Used by {X}.","{X} {is|are} built on this."]},
 "t":["Reminder that {S} depends on {O}, so upgrade in that order.","{S} uses {O}, so that has to be up first.","{S} is built on {O} and will need a release too.","We found out that {S} requires {O} at startup."]},
"replaces":{"s":{"frontmatter":["replaces","supersedes"],"inline":["Replaces","Supersedes"],"relations":["replaces","supersedes"],"heading":["Replaces"],
  "prose":["Replaces {X}.","It replaced {X} in {y}.","Successor to {X}."]},
 "o":{"frontmatter":["replaced_by","superseded_by"],"inline":["Replaced by","Superseded by"],"relations":["replaced_by","superseded_by"],"heading":["Replaced by"],
  "prose":["Replaced by {X}.","Deprecated in favour of {X}.","Was superseded by {X} in {y}."]},
 "t":["{S} has replaced {O} everywhere now.","Agreed that {S} replaces {O}."]},
"maintains":{"s":{"frontmatter":["maintains","maintainer_of"],"inline":["Maintains","maintainer of"],"relations":["maintains","maintainer_of"],"heading":["Maintains","Maintainer of"],
  "prose":["{He} maintains {X}.","Maintainer of {X}.","{s} looks after {X}."]},
 "o":{"frontmatter":["maintainers","maintainer"],"inline":["Maintainer","Maintained by"],"relations":["maintained_by"],"heading":["Maintainers"],
  "prose":["Maintained by {X}.","{X} {maintains|maintain} it.","{The maintainer is|Maintainers are} {X}."]},
 "t":["{S} maintains {O}, so ask there first.","{S}, who maintains {O}, will look at the bug.","{S} is the maintainer of {O} and wants a week for it."]},
"reports_to":{"s":{"frontmatter":["reports_to","manager"],"inline":["Reports to","Manager"],"relations":["reports_to","managed_by"],"heading":["Reports to","Manager"],
  "prose":["Reports to {X}.","{His} boss is {X}.","{His} manager is {X}.","{He} reports to {X} and they talk every Monday."]},
 "o":{"frontmatter":["direct_reports","reports"],"inline":["Direct reports","Manages"],"relations":["manages"],"heading":["Direct reports","Reports"],
  "prose":["{X} {reports|report} to {him}.","{He} manages {X}.","Direct reports: {X}."]},
 "t":["{S} reports to {O}, so the final word is there.","{S} needs sign-off from {O}, {Shis} manager.","{S} will check with {O}, who is {Shis} manager.","Org chart: {S} reports to {O}."]},
"parent_company":{"s":{"frontmatter":["parent_company","parent"],"inline":["Parent company","Parent"],"relations":["subsidiary_of","part_of"],"heading":["Parent company"],
  "prose":["Part of {X}.","A subsidiary of {X}.","Owned by {X}.","The parent company is {X}."]},
 "o":{"frontmatter":["subsidiaries"],"inline":["Subsidiaries"],"relations":["parent_of","owns"],"heading":["Subsidiaries","Brands"],
  "prose":["Parent company of {X}.","Owns {X}.","Subsidiaries include {X}."]},
 "t":["{S} is a subsidiary of {O}, so expect group procurement.","{S} belongs to {O}, which means their legal team gets involved.","{O} is the parent company of {S}."]},
}
T["met_with"]["o"]=T["met_with"]["s"]
facts=[]; FK=set(); TR=[]
uses=collections.Counter()
def pick(key, opts):            # least used first, ties at random
    m=min(uses[(key,o)] for o in opts); o=R.choice([o for o in opts if uses[(key,o)]==m]); uses[(key,o)]+=1; return o
def fmt(t, note=None, X=None, n=1, **kw):
    t=re.sub(r"\{([^{}|]*)\|([^{}|]*)\}", lambda m:m.group(1) if n==1 else m.group(2), t)
    d=dict(y=R.choice(range(2016,2024)),month=R.choice(MONTHS),city=R.choice(CITIES),role2=R.choice(["analyst","account manager","team lead","consultant","product manager"]))
    if note is not None:
        m=note.g=="m"
        d.update(s=note.first,He="He" if m else "She",he="he" if m else "she",him="him" if m else "her",his="his" if m else "her",His="His" if m else "Her",role=getattr(note,"role",""),bare=getattr(note,"bare",""),Role=cap(getattr(note,"bare","")))
    if X is not None: d["X"]=X
    d.update(kw); return t.format(**d)
def cap(s): return s[:1].upper()+s[1:]
FW={"prose":36,"frontmatter":22,"inline":14,"relations":14,"heading":14}
fcount=collections.defaultdict(collections.Counter)
def form_for(rel,end,k):
    # keep the mix close to FW over the whole set
    opts=list(FW); c=fcount[rel]; tot=sum(c.values())+2
    sc={f:(FW[f]/100*tot-c[f])+R.uniform(0,1.2) for f in opts}
    return max(opts,key=lambda f:sc[f])
def record(rel,s,o,form,at,loc):
    assert (rel,s.id,o.id) not in FK,(rel,s.title,o.title)
    FK.add((rel,s.id,o.id)); facts.append((rel,s.id,o.id,form,at.id,loc)); fcount[rel][form]+=(loc!="t")
def YR(rel):
    a,b={"works_at":(2021,2024),"worked_at":(2015,2021),"founded":(2008,2018),"acquired":(2018,2024)}.get(rel,(2019,2024))
    return {"y":R.randrange(a,b)}
def state(rel,end,note,others):
    f=form_for(rel,end,len(others)); opts=T[rel][end][f]
    if rel=="replaces" and note.type=="person":
        opts=({"s":["{He} replaced {X}.","Took over from {X}."],"o":["{X} took over {his} job in {y}.","Was replaced by {X}."]}[end] if f=="prose" else opts[:1])
    if rel=="works_at" and end=="s" and note.id in founded: opts=[x for x in opts if not x.startswith("Joined")]
    k=pick((rel,end,f),opts)
    if f=="prose": note.prose.append(cap(fmt(k,note,join([link(x) for x in others]),len(others),**YR(rel))))
    elif f=="frontmatter": note.lists.setdefault(k,[]).extend(link(x,False) for x in others)
    elif f=="inline": note.inline.append((k,[link(x,False) for x in others]))
    elif f=="relations": note.rels+= ["- %s %s"%(k,link(x,False)) for x in others]
    else:
        k2=k
        note.heads.setdefault(k2,[]).extend("- "+link(x,False)+((" (%s)"%x.bare) if rel=="works_at" and end=="o" and R.random()<.5 else "") for x in others)
    for x in others:
        s,o=(note,x) if end=="s" else (x,note); record(rel,s,o,f,note,end)
def third(rel,s,o,note):
    opts=T[rel]["t"]
    if rel=="replaces" and s.type=="person": opts=["{S} took over from {O}, new contact for us.","{S} has replaced {O}, so update the list."]
    if rel=="works_at" and s.id in founded: opts=[x for x in opts if "joined" not in x]
    t=pick((rel,"t"),opts)
    kw=dict(S=link(s,R.random()<.5) ,O=link(o,False) if rel!="attended" else link(o),Shis="his" if s.g=="m" else "her",**YR(rel))
    if rel=="attended": kw["O"]="[[%s|%s]]"%(o.title,"the "+o.topic)
    line=cap(fmt(t,s,**kw)); form="prose"
    if R.random()<.12: note.heads.setdefault("People and org" if s.type in("person",) else "Background",[]).append("- "+line); form="heading"
    else: note.third_lines.append(line)
    note.third+=1; record(rel,s,o,form,note,"t")

# ---------- assignment of facts
emp={}; staff=collections.defaultdict(list)
pool=people[:]; R.shuffle(pool)
# lookalike people never share an employer by accident of the draw: simply draw, then check
slots=[BY[c] for c,k in SIZES.items() for _ in range(k)]; 
i=0
for c in slots:
    if i>=len(pool)-5: break
    emp[pool[i].id]=c; staff[c.id].append(pool[i]); i+=1
ROLES=["head of operations","head of sales","engineering manager","product manager","finance director","account manager","data engineer","procurement lead","staff engineer","head of marketing","general counsel","customer success lead","platform engineer","recruiter"]
F=[]  # (rel,s,o)
for c in companies:
    st=staff[c.id]; 
    for j,p in enumerate(st):
        b=("partner" if j==0 else "associate") if c.sector=="fund" else ("CEO" if j==0 and (len(st)>1 or c.title in STARTUPS) else R.choice(ROLES))
        p.bare=b; p.role=b if b=="CEO" or b.startswith(("head of","general","finance")) else ("an " if b[0] in"aeiou" else "a ")+b
        if b=="CEO": p.role="CEO"
        F.append(("works_at",p,c))
    if len(st)>1 and c.sector!="fund":
        for j,p in enumerate(st[1:]):
            if j<3 or R.random()<.4:
                boss=st[0] if j!=2 else st[1]
                if R.random()<.72: F.append(("reports_to",p,boss))
jobless=[p for p in people if p.id not in emp]
for p in jobless: p.bare=p.role=""
# founders
founder_left=set(); founded=set()
for t in STARTUPS+["Harrow & Finch","Lumen Freight","Northgate Systems","Lanternworks"]:
    c=BY[t]; st=staff[c.id]
    if st and R.random()<.85: F.append(("founded",st[0],c)); founded.add(st[0].id)
    if len(st)>2 and R.random()<.45: F.append(("founded",st[1],c)); founded.add(st[1].id); st[1].bare=st[1].role="CTO"
serial=[p for p in people if p.id in founded][:4]+jobless[:3]
for p,t in zip(serial,["Arden Legal","Atlas Paper","Birch Street Coffee","Clearbrook Water","Mosaic Dental","Pinnacle Fleet","Birch Street Coffee"]):
    F.append(("founded",p,BY[t])); founder_left.add((p.id,BY[t].id))
# former jobs
cand=[p for p in people if p.id not in founded]; R.shuffle(cand)
popular=[BY[t] for t in ["Quarry Bank","Marlowe Media","Nimbus Telecom","Harrow & Finch","Saltmarsh Energy","Northgate Systems","Oakline Insurance","Vantage Clinics","Lumen Freight","Meridian Holdings","Cobalt Rail","Corvid Analytics"]]
wk=0
FKtmp=set()
for p in jobless+cand:
    if wk>=36: break
    for _ in range(2 if R.random()<.25 else 1):
        c=R.choice(popular)
        if emp.get(p.id) is c or (p.id,c.id) in FKtmp or (p.id,c.id) in founder_left: continue
        FKtmp.add((p.id,c.id)); F.append(("worked_at",p,c)); wk+=1
# person replaced person
rp=[p for p in cand if (p.id in emp and emp[p.id].title in("Quarry Bank","Nimbus Telecom","Harrow & Finch","Oakline Insurance","Northgate Systems"))]
nrep=0
for p in rp:
    ex=[q for q in people if (q.id,emp[p.id].id) in FKtmp and emp.get(q.id) is not emp[p.id] and not any(r=="replaces" and q is b for r,a,b in F)]
    if ex and nrep<4: F.append(("replaces",p,ex[0])); nrep+=1
for l in REPL.split(): a,b=l.split(">"); F.append(("replaces",BY[a],BY[b]))
for l in DEPENDS.split(): a,b=l.split(">"); F.append(("depends_on",BY[a],BY[b]))
devs=[p for p in people if any(w in p.bare for w in("engineer","CEO","product"))and p.id in emp and emp[p.id].sector in("data","IT services","software","telecom","fintech","robotics","mobility","logistics")]
R.shuffle(devs)
for k,l in enumerate(libs):
    F.append(("maintains",devs[k%10],l))
    if k%5==1: F.append(("maintains",devs[(k+4)%10],l))
for l in PARENT.split("|"): a,b=l.split(">"); F.append(("parent_company",BY[a],BY[b]))
# investments
funds=[c for c in companies if c.sector=="fund"]; angels=[p for p in people if p.bare=="CEO"][:4]+jobless[:3]
inv=set()
for k,t in enumerate(STARTUPS):
    for q in R.sample(funds,2+(k%3==0)): inv.add((q.id,BY[t].id))
for a in angels:
    for t in R.sample(STARTUPS,1+(R.random()<.5)):
        if emp.get(a.id) is not BY[t]: inv.add((a.id,BY[t].id))
inv=[("invested_in",N[a],N[b]) for a,b in sorted(inv)]
# pools: people for group meetings / people for one-to-ones
pp=people[:]; R.shuffle(pp); onepool,grp=pp[:30],pp[30:]
ms=meetings[:]; R.shuffle(ms); grpmeet=sorted(ms[:46],key=lambda m:m.date); othermeet=ms[46:]
met=set()
while len(met)<27:
    a,b=R.sample(onepool,2)
    if (b.id,a.id) in met or emp.get(a.id) is emp.get(b.id): continue
    if sum(a.id in x for x in met)>3 or sum(b.id in x for x in met)>3: continue
    met.add((a.id,b.id))
for a,b in sorted(met): F.append(("met_with",N[a],N[b]))
for m in grpmeet: m.att=R.sample(grp,R.choice([1,2,2,2,3,4]))
TRUE={(r,s.id,o.id) for r,s,o in F}|{(r,s.id,o.id) for r,s,o in inv}|{("attended",p.id,m.id) for m in grpmeet for p in m.att}
acq=[]
for l in ACQ.split("|"):
    ab,d=l.split(";"); a,b=ab.split(">"); acq.append((BY[a],BY[b],d)); TRUE.add(("acquired",BY[a].id,BY[b].id))
PAIR=collections.defaultdict(set)
for r,s,o in TRUE: PAIR[frozenset((s,o))].add(r)

# ---------- deals
order=list(range(1,26)); R.shuffle(order)
def deal(title,stage):
    n=add(Note("deal-%03d"%order[len(deals)],"deal","deals",title)); n.fm["stage"]=stage; deals.append(n)
    n.fm["value"]=str(R.choice([40,65,80,120,250,400,900]))+"k"; return n
for a,b,d in acq:
    if not d: continue
    n=deal(d,"closed"); n.fm["value"]="undisclosed"; f=["frontmatter","inline","prose","prose"][len(deals)%4]
    if f=="frontmatter": n.lists["acquirer"]=[link(a,False)]; n.lists["target"]=[link(b,False)]; n.intro.append("Closed after a long autumn of diligence.")
    elif f=="inline": n.inline+=[("Buyer",[link(a,False)]),("Target",[link(b,False)])]; n.intro.append("Signed and closed on the same day.")
    else: n.prose.append(R.choice(["%s acquired %s, closed in %s.","%s bought %s; the deal closed in %s."])%(link(a),link(b),R.choice(MONTHS)))
    record("acquired",a,b,f,n,"t"); n.kind="acq"
for l in ACQ_FAIL.split("|"):
    ab,d=l.split(";"); a,b=map(BY.get,ab.split(">")); n=deal(d,"dead"); n.kind="acq"; n.fm["value"]="undisclosed"
    n.traps.append(pick("acqfail",["{S} wanted to buy {O} but talks collapsed in diligence.","{S} made an offer for {O}, the board turned it down and that was the end of it.","The plan was for {S} to acquire {O}. It fell through over price."]).format(S=link(a),O=link(b)))
    TR.append(("acquired",a,b,n))
R.shuffle(inv); dealinv=[]
seen=set()
for x in inv:
    if x[2].id in seen or len(dealinv)>=10: continue
    seen.add(x[2].id); dealinv.append(x)
for k,(r,s,o) in enumerate(dealinv):
    rd=["Seed","Series A","Series B","Bridge"][k%4]; n=deal("%s %s"%(o.title,rd.lower() if rd in("Seed","Bridge") else rd),"closed"); n.kind="round"; n.fm["value"]=R.choice(["1.2m","3m","6m","14m"])
    f=["frontmatter","prose","inline","prose","heading"][k%5]; lead="lead investor" 
    if f=="frontmatter": n.lists["company"]=[link(o,False)]; n.lists["investor"]=[link(s,False)]; n.intro.append("%s round, went quicker than expected."%rd)
    elif f=="inline": n.inline+=[("Company",[link(o,False)]),("Lead investor",[link(s,False)])]; n.intro.append("%s round, closed on standard terms."%rd)
    elif f=="heading": n.intro.append("%s round for %s."%(rd,link(o))); n.heads["Investors"]=["- "+link(s,False)]
    else: n.prose.append(R.choice(["{S} invested in {O}, closed in {m}.","{S} led the round in {O}, closed in {m}.","{O} raised from {S}, announced in {m}."]).format(S=link(s),O=link(o),m=R.choice(MONTHS)))
    record("invested_in",s,o,f,n,"t")
    if k in(0,3,6):
        q=R.choice([x for x in funds if ("invested_in",x.id,o.id) not in TRUE])
        n.traps.append(R.choice(["%s looked at it and passed.","%s had a term sheet out as well but pulled it.","%s decided not to invest in the end."])%link(q)); TR.append(("invested_in",q,o,n))
restinv=[x for x in inv if x not in dealinv]
for t in ["Tern Mobility","Wren Education"]:
    o=BY[t]; q=R.choice([x for x in funds if ("invested_in",x.id,o.id) not in TRUE])
    n=deal("%s extension round"%t,"dead"); n.kind="round"; n.traps.append(R.choice(["%s was going to invest in %s, then the committee said no.","%s agreed in principle to back %s but it never closed."])%(link(q),link(o))); TR.append(("invested_in",q,o,n))
sales=["Cedarwood Care","Stonebridge Homes","Cobalt Rail","Vantage Clinics","Atlas Paper","Ember Kitchens","Saltmarsh Energy","Marlowe Media","Halyard Marine","Oakline Insurance"]
for t in sales:
    if len(deals)>=25: break
    n=deal("%s %s"%(t,R.choice(["renewal","pilot","rollout"])),R.choice(["negotiation","won","proposal","lost"])); n.kind="sale"
    n.intro.append(R.choice(["Deal with {O}.","{O} want the standard package plus training.","Came in through the website, {O} asked for a quote."]).format(O=link(BY[t])))
assert len(deals)==25,len(deals)

# ---------- place facts: half subject's note / quarter object's / quarter third
HOSTS=meetings+deals+people
def host(s,o,rel):
    ok=[h for h in HOSTS if h not in(s,o) and h.third<2 and h not in onepool]
    if rel in("depends_on","maintains","replaces") and s.type!="person" or rel=="maintains": 
        t=[h for h in ok if h.type=="meeting" and h.theme=="tech"]; ok=[h for h in t if h.third<2] or [h for h in meetings if h.third<2 and h.theme in("plan","cust","tech")] 
    elif rel=="attended": ok=[h for h in meetings if h.date>o.date and h.theme==o.theme and h.third<2] or [h for h in meetings if h.date>o.date and h.third<2] or [h for h in meetings if h.date>o.date]
    elif rel=="met_with": ok=[h for h in ok if h.type in("meeting","deal") and h in othermeet or h.type=="deal"] or [h for h in ok if h.type=="meeting"]
    else: ok=[h for h in ok if h.type!="person" or R.random()<.3]
    m=min(h.third for h in ok); return R.choice([h for h in ok if h.third==m])
LC=collections.defaultdict(collections.Counter)
def locus(rel,s,o):
    c=LC[rel]; t=sum(c.values())+1
    w={"s":.5,"o":.25,"t":.25}
    if rel=="acquired": w={"s":.6,"o":.4,"t":0}
    if rel=="invested_in": w={"s":.55,"o":.42,"t":0.03}
    if rel=="attended": w={"s":.25,"o":.5,"t":.25}
    if rel=="met_with": w={"s":.6,"o":.15,"t":.25}
    x=max(w,key=lambda k:w[k]*t-c[k]+R.uniform(0,.9)); 
    if w[x]==0 or (x=="t" and not T[rel]["t"]): x="s"
    c[x]+=1; return x
groups=collections.OrderedDict(); thirds=[]
allF=F+restinv+[("acquired",a,b) for a,b,d in acq if not d]
for r,s,o in allF:
    l=locus(r,s,o)
    if l=="t": thirds.append((r,s,o))
    else: groups.setdefault((r,l,(s if l=="s" else o).id),[]).append(o if l=="s" else s)
for k,m in enumerate(grpmeet):
    base=locus("attended",None,m); 
    for j,p in enumerate(m.att):
        l=base if j<3 else R.choice("sot"); 
        if l=="t" and not any(h.date>m.date for h in meetings): l="o"
        if j: LC["attended"][l]+=1
        if l=="t": thirds.append(("attended",p,m))
        else: groups.setdefault(("attended",l,(p if l=="s" else m).id),[]).append(m if l=="s" else p)
gl=list(groups.items()); R.shuffle(gl)
for (r,l,nid),oth in gl: state(r,l,N[nid],oth)
R.shuffle(thirds)
# third-note attended facts of one meeting go into one later note
tm={}
for r,s,o in thirds:
    if r=="attended":
        h=tm.get(o.id) or host(s,o,r); tm[o.id]=h
    else: h=host(s,o,r)
    third(r,s,o,h)

# ---------- traps
def trap(rel,s,o,note,opts):
    if PAIR[frozenset((s.id,o.id))]: return False
    if any(rel==t[0] and {s.id,o.id}=={t[1].id,t[2].id} for t in TR): return False
    x=o if note is s else s
    note.traps.append(cap(fmt(pick(("trap",rel,note is s),opts),note,link(x)))); TR.append((rel,s,o,note)); return True
def many(n,gen):
    k=0
    for _ in range(500):
        if k>=n: return
        k+=bool(gen())
op=[c for c in companies if c.sector!="fund"]
emplist=[p for p in people if p.id in emp]
def few(L,n=1): L=[x for x in L if len(x.traps)<n]; return R.choice(L)
many(16,lambda:trap("works_at",*(lambda p,c:(p,c,p))(few(emplist),R.choice(op)),["Had an offer from {X} last year but turned it down.","Does not work at {X}, people keep mixing that up.","Interviewed at {X} in {month}, nothing came of it.","{He} was going to join {X}, then the role was cut."]))
many(6,lambda:trap("works_at",*(lambda c,p:(p,c,c))(few(op),R.choice(emplist)),["{X} was supposed to join them, but stayed put.","We tried to place {X} here without luck.","{X} only did the intro, not on their payroll."]))
many(6,lambda:trap("founded",*(lambda p,c:(p,c,p))(few(emplist),R.choice(op)),["Often introduced as a founder of {X}, which is wrong.","Thought about starting a rival to {X} but dropped the idea.","Knows the founders of {X} well."]))
st=[BY[t] for t in STARTUPS]
many(9,lambda:trap("invested_in",*(lambda c,q:(q,c,c))(few(st,2),R.choice(funds)),["{X} passed on the round.","{X} looked at them twice and never invested.","Talks with {X} about money went nowhere."]))
many(5,lambda:trap("invested_in",*(lambda q,c:(q,c,q))(few(funds,2),R.choice(st)),["Passed on {X}, too expensive.","Nearly invested in {X} but could not agree terms."]))
many(4,lambda:trap("acquired",*(lambda a,b:(a,b,a))(few(op,2),R.choice(op)),["There was a rumour they would buy {X}; not true.","Wanted to buy {X} but the deal fell through."]))
many(22,lambda:trap("attended",*(lambda m,p:(p,m,m))(few(grpmeet),R.choice(grp)),["Apologies: {X}.","{X} could not make it.","{X} was invited but did not come.","{X} sent apologies, will read the notes.","Missing: {X}, stuck on a train.","Should have invited {X}."]))
many(6,lambda:trap("attended",*(lambda p,m:(p,m,p))(few(grp),R.choice(grpmeet)),["Missed {X} because of a clash.","Was invited to {X} but cancelled the same morning."]))
many(9,lambda:trap("met_with",*(lambda a,b:(a,b,a))(few(onepool),R.choice(onepool)),["Was meant to meet {X} in {month}, cancelled at the last minute.","Wants to meet {X} at some point.","Has never met {X} in person, only email."]))
many(6,lambda:trap("depends_on",*(lambda a,b:(a,b,a))(few(libs),R.choice(libs)),["No longer depends on {X}.","We looked at {X} for this but went without it.","Does not need {X}, despite what the old readme says."]))
many(3,lambda:trap("replaces",*(lambda a,b:(a,b,a))(few(libs),R.choice(libs)),["There was a plan to replace {X} with this, since abandoned.","Not a replacement for {X}."]))
many(5,lambda:trap("maintains",*(lambda l,p:(p,l,l))(few(libs,2),R.choice(emplist)),["{X} used to maintain it but handed over.","{X} fixed a bug once, nothing more.","{X} was asked to take it over and said no."]))
def rt():
    p=few(emplist); L=[q for q in staff[emp[p.id].id] if q is not p]; q=R.choice(L) if L else p; return q is not p and trap("reports_to",p,q,p,["Does not report to {X}, although they sit together.","Was going to move under {X}, the reorg was cancelled."])
many(5,rt)
many(5,lambda:trap("parent_company",*(lambda a,b:(a,b,a))(few(op,2),R.choice(op)),["Not part of {X}, just the same building.","Supplier to {X}, otherwise independent.","Works with {X} on one contract, no ownership link."]))
SIM=[("Anna Berg","Anna Bergman"),("Tom Hartley","Thomas Hartnell"),("Daniel Cho","Daniela Choi"),("Elena Petrova","Helena Petrov"),("Julia Kessler","Julian Kessel"),("Erik Dahl","Erica Dahlman"),("Marcus Reid","Mark Reid"),("Northgate Systems","Northgate Capital"),("Lumen Freight","Lumen Health"),("ledgerkit","ledger-core")]
for a,b in SIM:
    a,b=BY[a],BY[b]
    if R.random()<.8: a.tail.append("Not to be confused with [[%s]]."%b.title)
    if R.random()<.4: b.tail.append("Different from [[%s]]!"%a.title)
# plain mentions
for p in R.sample(grp,14):
    q=R.choice([q for q in grp if q is not p and not PAIR[frozenset((p.id,q.id))] and q not in onepool])
    p.tail.append(fmt(R.choice(["Knows {X} from university.","Old friend of {X}.","{X} gave me {his} number."]),p,link(q)))
# ---------- filler
bag={}
def draw(key,L,n):
    out=[]
    for _ in range(n):
        b=bag.setdefault(key,[]) 
        if not b: b.extend(SH(L[:]))
        out.append(b.pop())
    return out
def words(t): return len(re.findall(r"\S+",t))
def body(n):
    out=[]; r=random.Random(n.id)
    if n.type=="person" and n.folder=="people": lead=[]
    sents=n.intro+n.prose
    if n.folder=="people" and n.fill: sents=n.prose+n.fill[:1]
    inl=[]; st=r.randrange(4)
    for k,v in n.inline:
        s=", ".join(v)
        inl.append(["%s:: %s","**%s**:: %s","- %s:: %s","[%s:: %s]"][st]%(k,s))
    if inl: out.append("\n".join(inl))
    if sents: out.append(" ".join(sents))
    rest=(n.fill[1:] if n.folder=="people" else n.fill)
    mid=rest[:len(rest)//2]+n.third_lines[:1]+n.traps+rest[len(rest)//2:]+n.third_lines[1:]+n.tail
    if n.folder in("meetings","deals"):
        hd="## Notes" if n.folder=="meetings" else "## Log"
        out.append(hd+"\n"+"\n".join("- "+x for x in mid))
    elif mid:
        cut=max(1,len(mid)//2); out.append(" ".join(mid[:cut])); 
        if mid[cut:]: out.append(" ".join(mid[cut:]))
    for h,l in n.heads.items():
        blk="## %s\n%s"%(h,"\n".join(l)); 
        if n.folder=="meetings" and h in("Attendees","Participants","Present"): out.insert(0,blk)
        else: out.append(blk)
    if getattr(n,"tasks",None): out.append(("## Actions\n" if n.folder=="meetings" else "## To do\n")+"\n".join(n.tasks))
    if n.rels: out.append("## Relations\n"+"\n".join(n.rels))
    return "\n\n".join(out)
ACT=["- [ ] Circulate notes","- [ ] Book the follow-up","- [ ] Update the tracker","- [ ] Send the numbers to finance","- [x] Share the recording","- [ ] Draft the proposal by Monday","- [ ] Check with legal"]
DFILL={"acq":["Bankers asked for too much as usual.","Price was never confirmed in public.","Integration was always going to be the hard part.","Earn-out over two years was discussed.","Diligence list had 140 items."],
"round":["Valuation is on the high side for the sector.","Pro-rata rights were the longest discussion.","Board seat plus one observer.","Legal docs based on the usual template.","Money is meant to last eighteen months."],
"sale":["Budget holder changed halfway through.","They want a discount for a two-year term.","Procurement asked for three references.","Security review took six weeks.","Champion is keen, finance less so.","Next step is a demo for the wider team."]}
LFILL=["Tests run in about three minutes.","License is MIT.","Releases roughly once a month, changelog is kept by hand.","Issues are triaged on Wednesdays.","Docs need love.","Written in Go with a thin Python binding.","CI has been flaky since the runner upgrade.","No open security issues.","Version 2 changed the config format, see the migration notes.","A new contributor guide landed in the spring."]
for n in N.values():
    if n.folder=="people":
        n.fm["location"]=n.loc; n.tasks=draw("pt",PTASK,R.choice([0,1,1,2])); n.tasks=[fmt(t,n) for t in dict.fromkeys(n.tasks)]
        src=lambda k:[fmt(x,n) for x in draw("pf",PFILL,k)]
        if n in jobless: n.intro.append(R.choice(["Independent consultant now.","Between jobs at the moment.","Retired, does a bit of advising."]))
        elif not any(k in n.lists for k in("company","employer","organization","works_at")) and R.random()<.4 and not any(f[0]=="works_at" and f[1]==n.id and f[4]==n.id and f[3]=="prose" for f in facts): n.fm["role"]=n.bare
        if R.random()<.25 and not any(n.title in x for x in SIM): n.aliases.append(n.first if R.random()<.6 else n.first[0]+". "+n.title.split()[1])
        if R.random()<.5: n.fm["tags"]="[%s]"%R.choice(["contact","crm","contact, follow-up","network"])
    elif n.folder=="companies":
        n.intro.insert(0,SECT[n.sector]+" based in "+n.hq+"."); n.fm["sector"]=n.sector; n.fm["hq"]=n.hq
        src=lambda k,n=n:draw("ff",FFILL,k) if n.sector=="fund" else draw("cf",CFILL,k)
    elif n.folder=="meetings":
        src=lambda k,n=n:draw("m"+n.theme,THEMES[n.theme],k); n.tasks=list(dict.fromkeys(draw("act",ACT,R.choice([1,2,3]))))
        if R.random()<.3: n.intro.insert(0,R.choice(["Ran over by ten minutes.","Short one.","Held over video.","In person, big room.","Useful."]))
    elif n.folder=="projects":
        n.intro.insert(0,cap(n.desc)+". "+n.extra); src=lambda k:draw("lf",LFILL,k); n.fm["status"]="deprecated" if n.title in("oxbow","ravelle","pebblestore","parcelite","saltbox") else "active"
    else:
        src=lambda k,n=n:draw("d"+n.kind,DFILL[n.kind],k); n.fm["updated"]="2024-%02d-%02d"%(R.randint(1,6),R.randint(1,28))
    tgt=R.randint(54,R.choice([70,85,110,140]) if n.folder in("people","companies") and getattr(n,"sector","")!="fund" else 80)
    for _ in range(20):
        if words(body(n))>=tgt: break
        x=src(1)[0]
        if x not in n.fill: n.fill.append(x)
    k=0
    while words(body(n))<52 and k<20:   # exhausted bank
        k+=1; x=R.choice(["Nothing else to add for now, will update after the next call.","See the shared folder for the longer version of these notes.","Written down the same evening so some details may be off."])
        if x not in n.fill: n.fill.append(x)
def render(n):
    y=["---","id: "+n.id,"type: "+n.type]
    if n.aliases: y.append("aliases: [%s]"%", ".join(n.aliases))
    for k,v in n.fm.items(): y.append("%s: %s"%(k,v))
    for k,v in n.lists.items():
        if len(v)==1 and k not in("employees","people","team","attendees","participants","subsidiaries","portfolio","investors","alumni","direct_reports"): y.append('%s: "%s"'%(k,v[0]))
        elif R.random()<.3: y.append("%s: [%s]"%(k,", ".join('"%s"'%x for x in v)))
        else: y.append(k+":"); y+=['  - "%s"'%x for x in v]
    y.append("---"); 
    t="# "+n.title+"\n\n" if R.random()<.7 else ""
    return "\n".join(y)+"\n\n"+t+body(n)+"\n"
for n in N.values():
    d=OUT+"/notes/"+n.folder; os.makedirs(d,exist_ok=True); open(d+"/"+n.title+".md","w").write(render(n))

# ---------- questions
Q={
"works_at":{"o":["Who works at {n}?","who is currently at {n}","people who work at {n}","Who's on the team at {n}?","employees of {n}","Who do we have at {n} right now?"],"s":["Where does {n} work?","what company does {n} work for","Who does {n} work for now?","Which company is {n} at?","{n} current employer"]},
"worked_at":{"o":["Who used to work at {n}?","former employees of {n}","who has left {n}","Who worked at {n} before?","ex {n} people"],"s":["Where did {n} work before?","what was {n}'s previous company","Which companies did {n} use to work for?","{n} former employer"]},
"founded":{"o":["Who founded {n}?","founders of {n}","who started {n}","Who set up {n}?"],"s":["What company did {n} found?","which companies has {n} started","What did {n} found?"]},
"invested_in":{"o":["Who invested in {n}?","investors in {n}","who has backed {n}","Which investors does {n} have?","Who put money into {n}?"],"s":["What has {n} invested in?","{n} portfolio companies","which companies did {n} back","Which startups has {n} invested in?"]},
"acquired":{"o":["Who acquired {n}?","who bought {n}","Which company took over {n}?"],"s":["Which companies has {n} acquired?","what did {n} buy","acquisitions by {n}"]},
"attended":{"o":["Who attended the {n}?","who was at the {n}","Who was present at the {n}?","people at the {n}","Who came to the {n}?"],"s":["Which meetings did {n} attend?","what meetings was {n} in","meetings with {n} in the room","Which meetings has {n} been to?"]},
"met_with":{"s":["Who has {n} met with?","who did {n} meet","Who did {n} have a one-to-one with?","people {n} met with"]},
"depends_on":{"s":["What does {n} depend on?","dependencies of {n}","which libraries does {n} use","What does {n} need to run?"],"o":["What depends on {n}?","which projects use {n}","What is built on {n}?"]},
"replaces":{"s":["What did {n} replace?","what does {n} supersede"],"o":["What replaced {n}?","what do we use instead of {n}"]},
"maintains":{"s":["What does {n} maintain?","which projects does {n} look after"],"o":["Who maintains {n}?","maintainer of {n}","who looks after {n}"]},
"reports_to":{"s":["Who does {n} report to?","who is {n}'s manager","Who is {n}'s boss?"],"o":["Who reports to {n}?","direct reports of {n}","who does {n} manage"]},
"parent_company":{"s":["What is the parent company of {n}?","who owns {n}","Which group does {n} belong to?"],"o":["Which companies are part of {n}?","subsidiaries of {n}","which brands does {n} own"]},
}
QREP={"s":["Who did {n} replace?","whose job did {n} take over"],"o":["Who replaced {n}?","who took over from {n}"]}
QUOTA={"works_at":22,"worked_at":14,"founded":13,"invested_in":16,"acquired":8,"attended":19,"met_with":13,"depends_on":11,"replaces":6,"maintains":8,"reports_to":13,"parent_company":7}
assert sum(QUOTA.values())==150
ctx={"person":["{q} I want to ask for an intro.","{q} Need it before the call on Friday.","{q} Can't find it anywhere."],
"any":["{q} I need it for the quarterly summary.","{q} Putting together some background for tomorrow.","{q} Someone asked me this morning."]}
G=collections.OrderedDict()
for r,s,o,*_ in facts:
    G.setdefault((r,"s",s),[]).append(o)
    G.setdefault((r,"s" if r=="met_with" else "o",o),[]).append(s)
def ok(k):
    r,e,n=k
    if len(set(G[k]))>5: return False
    if r=="worked_at" and any(n in x for x in founder_left): return False
    if r=="attended" and (e=="s" and N[n] in onepool): return False
    if r=="works_at" and e=="o" and False: return False
    return True
qs=[]
for r,quota in QUOTA.items():
    ks=[k for k in G if k[0]==r and ok(k)]; R.shuffle(ks)
    sS=[k for k in ks if k[1]=="s"]; oO=sorted([k for k in ks if k[1]=="o"],key=lambda k:-(len(G[k])>1))
    if r in("acquired","invested_in","parent_company","depends_on","founded"): sS.sort(key=lambda k:-(len(G[k])>1))
    half=quota if not oO else round(quota*(.3 if r in("works_at","maintains") else .45))
    a=sS[:half]; b=oO[:quota-len(a)]; 
    if len(a)+len(b)<quota: a=sS[:quota-len(b)]
    assert len(a)+len(b)==quota,(r,len(a),len(b)); qs+=a+b
R.shuffle(qs)
def nm(n): return n.topic if n.type=="meeting" else (n.aliases[0] if n.folder=="companies" and n.aliases and R.random()<.3 else n.title)
rows=[]; filt=ctxn=0
for k in qs:
    r,e,nid=k; n=N[nid]; ans=sorted(set(G[k])); bank=QREP if r=="replaces" and n.type=="person" else Q[r]
    t=pick(("q",r,e,n.type=="person"),bank[e]); q=t.format(n=nm(n)); kind="plain"; A=[N[a] for a in ans]
    pro=lambda p:"he" if p.g=="m" else "she"
    bare=q.rstrip("?"); isq=q.endswith("?")
    new=None
    if filt<13 and len(A)>1:
        if A[0].folder=="people" and r in("works_at","attended","worked_at","reports_to") and all(a.folder=="people" for a in A):
            c=collections.Counter(a.loc for a in A)
            if len(c)>1 and R.random()<.55:
                L=R.choice(sorted(c)); new=bare+{"works_at":" and is based in "+L,"reports_to":" and is based in "+L}.get(r," and lives in "+L)
                if not t[0:3] in("Who","who") : new=bare+", only the ones in "+L
                if t.startswith("Who's") or t.startswith("who does") or "we have" in t or "who has left" in t: new=bare+", only people in "+L
                S=[a for a in A if a.loc==L]
        elif e=="s" and r=="attended":
            c=collections.Counter(a.date[0] for a in A)
            if len(c)>1: Y=R.choice(sorted(c)); new=bare+" in %d"%Y; S=[a for a in A if a.date[0]==Y]
        elif e=="s" and r=="invested_in" and R.random()<.7:
            c=collections.Counter(a.sector for a in A)
            if len(c)>1: Y=R.choice(sorted(c)); new=bare+", just the %s ones"%Y; S=[a for a in A if a.sector==Y]
        if new: filt+=1; q=new+("?" if isq else ""); A=S; kind="extra"
    if kind=="plain" and r=="works_at" and e=="s" and ctxn<12 and "does" in t:
        old=[f for f in facts if f[0]=="worked_at" and f[1]==nid]
        if old and ctxn<3: q=bare+" now, after leaving "+N[old[0][2]].title+("?" if isq else ""); q=q.replace("now now","now"); kind="extra"; ctxn+=1
    if kind=="plain" and isq and ctxn<12 and R.random()<.2:
        q=pick("ctx",ctx["person" if A[0].folder=="people" and r!="attended" else "any"][:3 if r!="attended" else 2]).format(q=q); kind="extra"; ctxn+=1
    rows.append((r,kind,n,q,[a.id for a in A],e))
with open(OUT+"/queries.jsonl","w") as a,open(OUT+"/qrels.tsv","w") as b,open(OUT+"/queries-meta.tsv","w") as c:
    for i,(r,kind,n,q,A,e) in enumerate(rows):
        qid="d%03d"%(i+1); a.write(json.dumps({"qid":qid,"text":q},ensure_ascii=False)+"\n")
        for x in A: b.write("%s\t%s\t1\n"%(qid,x))
        c.write("%s\t%s\t%s\t%s\n"%(qid,r,kind,n.id))
open(OUT+"/facts.tsv","w").write("".join("\t".join(f[:5])+"\n" for f in facts))
open(OUT+"/traps.tsv","w").write("".join("%s\t%s\t%s\t%s\n"%(r,s.id,o.id,n.id) for r,s,o,n in TR))
if __name__=="__main__":
    print(len(N),len(facts),len(TR),filt,ctxn, collections.Counter(f[5] for f in facts))
