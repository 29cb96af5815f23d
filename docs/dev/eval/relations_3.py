#!/usr/bin/env python3
"""Writes a set of questions by relation over a vault in which ten people write, each in another way.

Usage: relations_3.py FOLDER. The output is always the same. Each note has one of ten writers, and each writer states
facts by properties, Dataview fields, lists, labels, tables, headings or sentences of his or her own. Beside the set it
writes facts.tsv (each fact, how it is stated, and in which note), traps.tsv (what a note only seems to state) and
queries-meta.tsv (what each question asks).
"""
import collections
import json
import pathlib
import random
import sys

WRITERS = 10
PEOPLE = """Alma Reyes f|Bertil Strand m|Carmen Ochoa f|Dietrich Falk m|Eleni Markou f|Farid Nasser m|Greta Holm f
Hamish Orr m|Ilse Vogt f|Jorge Pinto m|Kirsten Dale f|Lamine Diop m|Maud Ferrier f|Nils Ekberg m|Odile Perrin f
Pavel Hruska m|Quinn Abbott f|Rashid Khan m|Signe Lund f|Tobias Kern m|Ulla Brink f|Viktor Sokol m|Wanda Zielinska f
Xavier Pons m|Yara Haddad f|Zoltan Kiss m|Agnes Merritt f|Boris Petkov m|Celia Duarte f|Dominic Shaw m|Edith Cole f
Fergus Blair m|Gloria Amadi f|Hector Ruiz m|Imke Jansen f|Jasper Thorne m|Katya Orlova f|Leopold Graf m|Mina Park f
Nestor Vidal m|Orla Keane f|Percy Whitlock m|Renata Bossi f|Silas Moore m|Tamsin Hale f|Ulrich Adler m|Vesna Ilic f
Walter Pym m|Yvonne Castel f|Zachary Lowe m|Amara Obi f|Bruno Salvi m|Cordelia Finch f|Damian Rook m|Esther Blum f
Florian Weiss m|Gwen Parry f|Horace Bell m|Ingrid Moe f|Julius Ameh m|Kerstin Wolf f|Luca Ferri m|Mabel Quist f
Noah Stern m|Oksana Bilyk f|Philip Drake m|Rosalind Ash f|Stellan Berg m|Thea Laskaris f|Umberto Neri m|Verity Sloan f
Wilfred Okoye m|Ximena Lara f|Yusuf Demir m|Zelda Marsh f|Anselm Gray m|Beatrix Voll f|Caspar Lind m|Dora Szabo f
Emil Novotny m|Freda Osei f|Gideon Marks m|Hilda Crane f|Ivo Kovac m"""
COMPANIES = """Aldgate Optics|Basalt Energy|Cinder Foods|Dovetail Homes|Elmwood Press|Fennel Labs|Garnet Shipping
Hollow Oak Dairy|Indigo Rail|Jetty Systems|Kiln Ceramics|Larkspur Health|Mortar Software|Nettle Cosmetics
Opal Insurance|Pennant Sports|Quill Education|Rampart Security|Sundial Media|Thimble Textiles|Umbra Games
Vesper Airlines|Willow Bank|Yarrow Pharma|Zenith Tools|Amberline Water|Bracken Forestry|Copperleaf Mining
Dunlin Robotics|Estuary Data|Flint Motors|Gable Architects|Heron Telecom|Iris Diagnostics|Juniper Cycles
Kestrel Drones|Lattice Chips|Magpie Retail|Nimble Payroll|Osier Furniture|Plover Travel|Ridgeway Logistics|Sorrel Kitchens"""
FUNDS = """Anchorage Capital|Bellwether Partners|Cairn Ventures|Drumlin Fund|Eddystone Equity|Foundry Row
Gannet Capital|Harbourlight Ventures|Isthmus Partners|Keystone Seed|Longshore Equity"""
TOOLS = """brindle|cobbler|dovecote|emberlog|fathom-api|gatepost|hayloft|inkwell|jackdaw|keelson|lodestar|mandolin
nutmeg|orchard-ui|pinion|quern"""
TOPICS = """Autumn pricing round|Board dinner in Lisbon|Budget reset|Canteen survey review|Charity run planning
Cold chain workshop|Compliance refresher|Container terminal visit|Customer day in Ghent|Data retention debate
Demo for the council|Depot tour|Design critique eleven|Diversity roundtable|Energy audit readout|Ethics panel
Export licence briefing|Factory walk|Fire drill debrief|Forecast clinic|Freight tariff session|Future of print talk
Garden party|Grant writing day|Harbour site visit|Hackweek finale|Hiring huddle|Incident review of 9 May
Intern showcase|Invoice backlog sprint|Kickoff for the tram line|Lease talks|Lighting trial|Loyalty scheme pitch
Maintenance window recap|Merger fears breakfast|Night shift council|Office plants vote|Packaging teardown
Patent strategy call|Payroll switchover|Pension briefing|Pilot wrap-up|Press rehearsal|Quality circle
Queue theory evening|Recycling task force|Refund policy hearing|Retro of the spring release|Roof solar bids
Safety stand-down|School outreach|Seat map argument|Speaker dinner|Supplier summit in Turin|Tender opening
Town hall at the mill|Translation sync|Vendor bake-off|Winter stock count"""
MEETING_FORMS = ["{T}", "{T}", "{D} {T}", "{T}"]

# How a writer states a relation: by KIND:NAME, where KIND is
#   fm property, dv Dataview field, rel list of relations, head heading with a list, label line, row of a table;
# otherwise a sentence. {l} are the links; {T} the title, {F} the first name, {He} {he} {him} {his} the pronouns.
# One line is one writer. "|" separates forms between which the writer chooses.
SUBJECT = {
    "works_at": """fm:employer
dv:company
label:Day job|label:Now
row:Employer
Turns out {he} is with {l} these days.|Bumped into {him} on the train; {he} has landed at {l}.
{T} is employed by {l}.|Current position: senior buyer, {l}.
{T}, head of planning at {l}, is the person everybody sends me to.|At {l} {he} runs the evening shift.
Our way in at {l}. {He} knows the budget.|Sits in the procurement team of {l}.
{He}'s been writing firmware for {l} since 2021.|On {l}'s payroll since the spring.
{F} earns {his} keep at {l}.|{F} has a desk at {l} and a view of the river.""",
    "worked_at": """fm:previously
dv:formerly
label:Before that
row:Past employer
Did a long stint at {l} and hated the commute.|Spent most of {his} thirties at {l}.
Prior employment: {l} (2014 to 2019).|Held a post with {l} until 2020.
{He} cut {his} teeth at {l}.|An old hand from {l}, where {he} ran the night desk for six years.
Ex-{l}, left on good terms.|Jumped ship from {l} last year.
{l} let {him} go in the big round of cuts.|Quit {l} after the reorganisation.
In an earlier life {he} was at {l}.|{l} had {him} for a decade, and then no more.""",
    "founded": """fm:founder_of
dv:founded
head:Companies started
row:Founder of
Got {l} off the ground in a borrowed garage.|{He} dreamt up {l} on a ferry and registered it a week later.
{T} is a founding partner of {l}.|Co-founder of {l}.
{He} built {l} from nothing.|The story of how {he} launched {l} with a loan from an aunt is well known.
The brain behind {l}: it was {him} who set it up.|Started {l} out of a shed.
Kicked off {l} with two friends from university.|Incorporated {l} in 2016 and still has the certificate on the wall.
{l} was {his} idea and {his} creation.|{F} brought {l} into the world, as {he} likes to put it.""",
    "invested_in": """fm:portfolio
dv:invested-in
head:Portfolio
row:Holdings
Wrote a cheque for {l}.|Put some of the inheritance into {l}.
Equity positions: {l}.|Holds a minority interest in {l}.
Led the seed round of {l}.|Backed {l} when nobody else would.
Came in early on {l}.|Funded {l} to the tune of two million.
Has money in {l}.|Participated in the last round of {l}.
Took a stake in {l}.|Owns a slice of {l}.""",
    "acquired": """fm:acquisitions
dv:bought
head:Acquisitions
row:Takeovers
Swallowed {l} last autumn.|They picked up {l} when it was cheap.
Completed the purchase of {l} in March.|Acquired all shares of {l}.
Snapped up {l} before anyone had noticed.|Took over {l} in a friendly deal.
{l} is theirs since the summer.|Bought out {l} for cash.
Absorbed {l}, staff and all.|Merged {l} into itself after buying it.
Added {l} to the family for a song.|Got hold of {l} in the end.""",
    "attended": """fm:meetings
dv:attended
head:Meetings
row:Was at
Came along to {l} and stayed till the end.|Showed up at {l} with a cold.
Participated in {l}.|Was present at {l}.
Sat through {l} without a word.|A voice in the back row at {l}.
Dialled into {l}.|In the room for {l}.
Joined {l} from the airport.|Was on {l}, camera off.
Graced {l} with {his} presence.|Made it to {l}.""",
    "met_with": """fm:met
dv:met
head:1:1s
row:Met
Had soup with {l} and forgot the time.|Ran into {l} at the market, and we ended up in a cafe.
Meeting held with {l} on site.|Bilateral with {l} in June.
Compared notes with {l} over breakfast.|Sat opposite {l} for two hours in the station bar.
Coffee with {l}, went well.|Lunch with {l} to talk terms.
Synced with {l} for half an hour.|Caught up with {l} after the release.
Took tea with {l}.|Spent an afternoon with {l} in the garden.""",
    "reports_to": """fm:manager
dv:reports-to
label:Boss
row:Line manager
{He} answers to {l}.|{His} boss is {l}, who is all right apparently.
Line management by {l}.|Reports directly to {l}.
Takes {his} orders from {l}.|{l} is the one to whom {he} has to explain every overrun.
Works under {l}.|Decisions go up to {l}, {his} manager.
{l} does {his} reviews and signs off {his} holidays.|Is on the team that {l} leads.
{F} serves under {l}.|{l} is set above {him}.""",
    "parent_company": """fm:parent
dv:parent-company
label:Owner
row:Parent
All of it belongs to {l} now.|One of the many things {l} has in the drawer.
A wholly owned subsidiary of {l}.|Part of the group around {l}.
Behind the brand stands {l}, which holds every share.|Sits under the umbrella of {l}.
Owned outright by {l}.|Controlled from the head office of {l}.
A division of {l}, legally speaking.|Rolls up into {l}.
A daughter of {l}.|{l} is the mother company.""",
    "depends_on": """fm:depends_on
dv:needs
head:Built on
row:Requires
Won't start without {l}.|Leans on {l} for everything difficult.
Technical prerequisites: {l}.|Depends on {l}.
Under the bonnet it is all {l}.|Rests on the shoulders of {l}.
Uses {l} for storage.|Needs {l} installed first.
Pulls in {l}.|Calls {l} on every request.
Sits on top of {l}.|Draws its strength from {l}.""",
    "replaces": """fm:replaces
dv:supersedes
label:Instead of
row:Successor of
We threw out {l} for this.|Came in when {l} finally died.
Supersedes {l}.|Introduced as a replacement for {l}.
Took the place of {l}.|Heir to {l}.
Replaced {l} last year.|Good riddance to {l}, this does its job now.
Drop-in for {l}, which is gone.|Rewrite of {l}.
Follows {l} in office.|Where {l} stood, this stands now.""",
    "maintains": """fm:maintains
dv:owner-of
label:Looks after
row:Responsible for
Keeps {l} alive on weekends.|{l} would be dead without {him}.
Custodian of {l}.|Responsible for the upkeep of {l}.
Nurses {l} through every release.|The hand that keeps {l} in shape.
Owns {l} on our side.|Go-to for anything about {l}.
On call for {l}.|Merges everything that goes into {l}.
Tends {l} like a garden.|{F} minds {l}.""",
}
# The same from the note at the other end.
OBJECT = {
    "works_at": """fm:team
dv:staff
head:People
row:Contacts
My friends there: {l}.|{l} clock in here every morning.
Personnel known to us: {l}.|Employs {l}.
On the masthead: {l}.|Among those who run the place: {l}.
Our champions inside: {l}.|Talk to {l} there.
Head count we know: {l}.|{l} hold the fort in the tech department.
Here labour {l}.|In its service: {l}.""",
    "worked_at": """fm:alumni
dv:former-staff
head:Left
row:Former staff
{l} got out in time.|No longer there: {l}.
Former employees: {l}.|Departures on record: {l}.
Alumni include {l}.|Those who walked away: {l}.
Lost {l} to a rival.|Leavers: {l}.
{l} handed in their badges.|Past team: {l}.
Once of this house: {l}.|Gone on to other things: {l}.""",
    "founded": """fm:founders
dv:founded-by
head:Founders
row:Founded by
Somebody told me that {l} began it all in a kitchen.|It started with {l} and one van.
Established by {l}.|Founding shareholder: {l}.
The brainchild of {l}.|Conceived by {l} and opened on a rainy Monday.
{l} set the thing up.|Founder story: {l}, a laptop and no sleep.
Created by {l}.|{l} wrote the first line of code and signed the papers.
Called into being by {l}.|{l} laid the first stone.""",
    "invested_in": """fm:investors
dv:backers
head:Cap table
row:Investors
The money came from {l}.|{l} chipped in when it was tight.
Shareholders: {l}.|Capital was provided by {l}.
Raised its seed from {l}.|On the strength of a demo, {l} came aboard with fresh capital.
{l} put in the first million.|Funding: {l}.
Bankrolled by {l}.|Investors so far: {l}.
{l} opened the purse.|Enjoys the backing of {l}.""",
    "acquired": """fm:acquired_by
dv:sold-to
label:New owner
row:Bought by
Ended up in the hands of {l}.|Got eaten by {l}.
Ownership passed to {l} in March.|Purchased by {l}.
Went to {l} after a bidding round.|Sold itself to {l}, quietly.
Now in the pocket of {l}, deal closed in May.|Acquired by {l}.
Taken over by {l}.|Since the exit to {l} nobody answers mail.
Passed to {l} for a fair price.|{l} came, saw and bought it.""",
    "attended": """fm:attendees
dv:participants
head:Present
row:Attendees
Sat down with {l}.|Squeezed into the small room with {l}.
Attending: {l}.|In attendance were {l}.
Around the table: {l}.|The usual faces, {l}, and a plate of biscuits.
On the call: {l}.|Had {l} in the room.
{l} joined, I took notes.|Dialled in: {l}.
head:Who was there""",
    "reports_to": """fm:direct_reports
dv:manages
head:Direct reports
row:Team
Has {l} to look after.|{l} are {his} people.
Subordinates: {l}.|Supervises {l}.
Around {him} works a small crew: {l}.|{l} take their cue from {him}.
Manages {l}.|On {his} team: {l}.
Leads {l}.|{l} report in to {him} on Mondays.
Sets the tasks of {l}.|{F} has charge of {l}.""",
    "parent_company": """fm:subsidiaries
dv:owns
head:Brands
row:Subsidiaries
They have {l} in the drawer.|{l} also belong to them.
Group companies: {l}.|Holds all shares of {l}.
Its stable contains {l}.|Few know that it also owns {l}.
Owns {l}.|House of brands: {l}.
Divisions: {l}.|Umbrella over {l}.
Mother of {l}.|Under its roof live {l}.""",
    "depends_on": """fm:used_by
dv:used-by
head:Used by
row:Dependents
{l} fall over whenever this one sneezes.|Without it {l} are dead.
Consumers: {l}.|Required by {l}.
The floor on which {l} stand.|{l} lean on it daily.
Used by {l}.|Customers inside the house: {l}.
Callers: {l}.|{l} import it.
It carries {l}.|{l} could not live without it.""",
    "replaces": """fm:replaced_by
dv:superseded-by
label:Use instead
row:Successor
Died, long live {l}.|We moved everything over to {l}.
Superseded by {l}.|Withdrawn in favour of {l}.
Gave way to {l}.|Its work is done by {l} now.
Replaced by {l}.|Retired, see {l}.
Deprecated, go to {l}.|Rewritten as {l}.
Yielded its place to {l}.|{l} took over its duties.""",
    "maintains": """fm:maintainers
dv:maintainer
head:Maintainers
row:Owner
Without {l} it would have rotted.|{l} keeps the lights on here.
Maintenance: {l}.|Technical owner: {l}.
In the care of {l}.|{l} has kept it in shape for years.
Ask {l}, who looks after it.|Owner on our side: {l}.
On call: {l}.|Merge rights: {l}.
{l} tends it.|Guarded by {l}.""",
}
# What a note about something else states of two others, each by the writer of its line.
THIRD = {
    "works_at": """{s} of {o} brought the slides.
{s} ([[{O}]]) asked most of the questions.
- {s}, {o}: wants the numbers by Friday
{s} from {o} had the best anecdote.
Funny to see {s} again; {he} has moved to {o} and looks younger.
{s}, representing {o}, objected to the wording.
{s}, who speaks for {o}, was quoted at length.
{s} has the purse at {o}, so we were polite.
{s} now codes for {o} and is happy there.
{s}, who has found a home at {o}, read aloud.""",
    "worked_at": """{s}, formerly of {o}, knew the history.
{s} was at {o} back then, so ask {him} about it.
- {s}: ex {o}, still angry
{s} left {o} in the winter.
{s} walked out of {o} for good, it seems.
{s} (until last year {o}) gave the introduction.
{s}, once the face of {o}, smiled.
{s} has turned {his} back on {o} and it shows.
{s} no longer works for {o}.
{s}, late of {o}, told stories.""",
    "founded": """{s}, founder of {o}, opened the discussion.
{s} started {o}, as we were reminded.
- {s}: set up {o} in 2012, sells nothing
{s} founded {o} after the flood.
{s} told us how {he} cobbled {o} together over a summer.
{s}, who established {o}, took the chair.
{s}, father or mother of {o} depending on whom you ask, left early.
{s} is the one who got {o} going.
{s} bootstrapped {o} by selling a car.
It was {s} who once called {o} into life.""",
    "invested_in": """{s} invested in {o} last month.
{s} is a backer of {o}.
- {s}: money in {o} since spring
{s} joined the round of {o}.
It came up that {s} has a tidy sum in {o}.
{s} subscribed for new shares of {o}.
{s} has bet on {o}, and said so.
{s} wired the money to {o} on Tuesday.
{s} funds {o}.
{s} has opened the purse for {o}.""",
    "acquired": """{s} has bought {o}.
{s} is the new owner of {o}.
- {s}: closed on {o} in June
{s} took over {o}.
So {s} really gobbled up {o}.
The sale of {o} to {s} was completed on the ninth.
{s} landed {o} after a long courtship.
{s} closed the purchase of {o}.
{s} acquired {o} and kept the name.
{o} has passed into the hands of {s}.""",
    "met_with": """{s} met {o} beforehand.
{s} and {o} had a one-to-one the day before.
- {s} + {o}: coffee on Monday, sorted it out
{s} had lunch with {o} about it.
{s} and {o} were seen over dumplings, laughing.
{s} conferred with {o} in person.
{s} spent the evening in conversation with {o}.
{s} grabbed {o} for a quick chat in the corridor.
{s} paired up with {o} in the office.
{s} walked along the harbour with {o}.""",
    "reports_to": """{s} reports to {o} now.
{s} has {o} as manager.
- {s}: boss is {o}
{s} works under {o}.
Poor {s} has to run everything past {o}, {his} boss.
{s} has been placed under the supervision of {o}.
{s} is the right hand of {o} and says so in every sentence.
{s} needs the nod of {o}, who manages {him}.
{s} is in the team of {o}.
{s} carries the bag of {o}.""",
}
# What only seems to state a relation.
TRAPS = {
    "works_at": ["{s} had an offer from {o} and said no.", "Rumour has it that {s} will go to {o}; {he} laughed.", "{s} sells to {o} but was never employed there.", "{s} would love to work for {o} one day."],
    "founded": ["{s} almost started {o} together with a cousin, but backed out before the papers.", "People think {s} founded {o}; that was somebody else."],
    "invested_in": ["{s} looked at {o} and passed.", "{s} is still undecided about putting money into {o}.", "{s} wanted into the round of {o}, but it was closed."],
    "acquired": ["{s} bid for {o} and lost.", "The plan of {s} to buy {o} was buried.", "{s} denies any interest in taking over {o}."],
    "attended": ["{s} was invited to {o} but stayed at home.", "{s} sent apologies for {o}.", "{s} missed {o} because of the strike."],
    "met_with": ["{s} tried to meet {o}, it never came to it.", "{s} and {o} have never met."],
    "reports_to": ["{s} refused to work under {o}.", "{s} and {o} are peers, whatever the chart says."],
}
NEUTRAL = ["Got the hint from {l}.", "{l} recommended the same book.", "Reminds me of {l}, for no good reason.", "Different from {l} in every respect.", "See the remark in {l} about prices.", "Sent a postcard to {l} on the same day.", "{l} had the opposite opinion.", "Compare with {l}."]
FILL = {
    "people": ["Drinks too much coffee and admits it.", "Answers mail within the hour, except on Fridays.", "{He} collects maps of places that no longer exist.", "Prefers the phone.", "Has strong opinions on fonts.", "Two cats, one piano, no television.", "{He} laughs at bad news.", "Best reached before nine.", "Never on social media.", "Remember: allergic to nuts.", "{He} keeps a paper diary.", "Once lent me an umbrella.", "Knows everyone in the port.", "A careful reader of contracts.", "Speaks four languages, two of them well.", "Does not like surprises.", "{He} wants agendas a day ahead.", "Is training for a triathlon.", "Good with numbers, impatient with slides.", "Used to be shy, is not any more.", "Always brings cake.", "Forgets names but never figures.", "{He} asked for the long version of the report.", "Will retire in ten years, {he} says."],
    "companies": ["Pays late but always pays.", "The lobby smells of paint.", "Turnover is flat, costs are not.", "Their web page has not changed since spring.", "Good people, odd processes.", "Order book full until winter.", "They measure everything twice.", "The unions are strong there.", "Reception never knows who is in.", "Their annual report is printed on thick paper.", "Margins under pressure from imports.", "Expanding to the north.", "They have two plants and a warehouse.", "Known for long contracts.", "A new logo, again.", "Nobody there likes our portal.", "Audit was clean.", "Hiring slowly.", "The canteen is excellent.", "They want a framework agreement."],
    "meetings": ["Started late because of the projector.", "We agreed to disagree on the second point.", "The list of open points grew to eleven.", "Nobody had read the paper.", "Action: circulate the draft.", "Good discussion, thin outcome.", "Budget is the elephant in the room.", "Next time with a moderator.", "Three options, none cheap.", "Vote postponed.", "The figures for the south were missing.", "Sandwiches were fine.", "Deadline moved by two weeks.", "Needs a legal opinion first.", "More heat than light.", "Ended ten minutes early.", "Risk register to be updated.", "The pilot goes on until June."],
    "deals": ["Signed on a Thursday, announced on a Monday.", "Advisers cost more than expected.", "Regulator had no questions.", "Price not disclosed.", "The paperwork took five months.", "Staff were told by mail.", "Earn-out over two years.", "Press was kind.", "Integration plan is thin.", "Valuation on the high side."],
    "projects": ["Tests run in four minutes.", "The readme is out of date.", "Latency is fine, memory is not.", "Written in a hurry, cleaned up since.", "No open incidents.", "Configuration by environment variables.", "Logs are noisy.", "Version two broke the plugins.", "Small and boring, which is praise.", "Documentation lives in the wiki.", "The build needs a proxy.", "Metrics are exported every minute."],
}
ASK = {
    "works_at": (["Where does {n} work?", "which company is {n} with", "Who employs {n}?", "{n}'s employer"], ["Who works at {n}?", "Who works for {n}?", "people at {n}", "Which of my contacts are employed by {n}?", "who do I know at {n}"]),
    "worked_at": (["Where did {n} work before?", "Which company did {n} leave?", "former employer of {n}"], ["Who used to work at {n}?", "former employees of {n}", "Who left {n}?", "who was at {n} in the past"]),
    "founded": (["What did {n} found?", "Which company was started by {n}?", "what has {n} founded"], ["Who founded {n}?", "Who started {n}?", "founder of {n}", "Who set up {n}?", "who is behind the founding of {n}"]),
    "invested_in": (["What has {n} invested in?", "Which companies are backed by {n}?", "investments of {n}", "Where did {n} put money?"], ["Who invested in {n}?", "Who are the investors of {n}?", "who funds {n}", "Who has a stake in {n}?", "Who backed {n}?"]),
    "acquired": (["What did {n} buy?", "Which company was acquired by {n}?", "takeovers by {n}"], ["Who bought {n}?", "Who acquired {n}?", "who took over {n}", "Which company bought {n}?"]),
    "attended": (["Which meetings did {n} attend?", "Where was {n} present?", "what meetings did {n} go to"], ["Who attended {n}?", "Who was at {n}?", "attendees of {n}", "Who took part in {n}?", "who was in the room at {n}", "participants of {n}"]),
    "met_with": (["Who did {n} meet?", "Who has {n} met with?", "people that {n} met", "who had a meeting with {n}"], None),
    "reports_to": (["Who does {n} report to?", "Who is the boss of {n}?", "{n}'s manager", "who manages {n}"], ["Who reports to {n}?", "direct reports of {n}", "Who works under {n}?", "Whom does {n} manage?"]),
    "parent_company": (["Who owns {n}?", "parent company of {n}", "Which group does {n} belong to?"], ["Which companies belong to {n}?", "subsidiaries of {n}", "What does {n} own?"]),
    "depends_on": (["What does {n} depend on?", "dependencies of {n}", "What does {n} use?"], ["What depends on {n}?", "Which projects use {n}?", "what needs {n}"]),
    "replaces": (["What did {n} replace?", "what does {n} supersede"], ["What replaced {n}?", "successor of {n}"]),
    "maintains": (["What does {n} maintain?", "which projects does {n} look after"], ["Who maintains {n}?", "Who is responsible for {n}?", "maintainer of {n}"]),
}
# How many questions are asked, and which share of them about the subject.
QUOTA = {"works_at": (22, .3), "worked_at": (15, .45), "founded": (14, .4), "invested_in": (18, .5), "acquired": (9, .5), "attended": (22, .3), "met_with": (12, 1), "reports_to": (13, .5), "parent_company": (7, .5), "depends_on": (8, .5), "replaces": (4, .5), "maintains": (6, .5)}

R = random.Random(20313)


class Note:
    def __init__(self, folder, title, number, gender=None):
        self.folder, self.title, self.gender = folder, title, gender
        self.id = f"e-{folder[:2]}-{number:02}"
        self.writer = R.randrange(WRITERS)
        self.aliases, self.properties, self.fields, self.rows = [], {}, [], []
        self.lines, self.sections, self.bullets = [], [], []

    def words(self, text):
        he, him, his = {"f": ("she", "her", "her"), "m": ("he", "him", "his")}.get(self.gender, ("it", "it", "its"))
        pairs = {"T": self.title, "F": self.title.split()[0], "he": he, "him": him, "his": his, "He": he.capitalize(), "His": his.capitalize()}
        for key, value in pairs.items():
            text = text.replace("{" + key + "}", value)
        return text


def split(text):
    return [part for line in text.splitlines() for part in line.split("|")]


def link(note, short=.2):
    """A link to a note, now and then with the short name."""
    if note.folder == "companies" and R.random() < short:
        return f"[[{note.title}|{note.title.split()[0]}]]"
    return f"[[{note.title}]]"


def joined(notes):
    links = [link(note) for note in notes]
    return links[0] if len(links) == 1 else ", ".join(links[:-1]) + " and " + links[-1]


def world():
    """The notes, and what is true of them: a list of (relation, subject, object)."""
    people = [Note("people", *(entry.rsplit(" ", 1)[0], i, entry[-1])) for i, entry in enumerate(split(PEOPLE))]
    companies = [Note("companies", title, i) for i, title in enumerate(split(COMPANIES))]
    funds = [Note("companies", title, i + len(companies)) for i, title in enumerate(split(FUNDS))]
    meetings, deals = [], []
    for i, topic in enumerate(split(TOPICS)):
        date = f"2030-{1 + i % 12:02}-{1 + i * 7 % 28:02}"
        note = Note("meetings", R.choice(MEETING_FORMS).format(T=topic, D=date), i)
        note.topic, note.date = topic, date
        meetings.append(note)
    projects = [Note("projects", title, i) for i, title in enumerate(split(TOOLS))]
    facts, staff = [], collections.defaultdict(list)
    for person in people[:-6]:
        company = R.choice(companies[:30] if R.random() < .85 else funds)
        staff[company.id].append(person)
        facts.append(("works_at", person, company))
        if R.random() < .5:
            facts.append(("worked_at", person, R.choice([c for c in companies if c is not company])))
    for company in R.sample(companies, 24):
        for person in R.sample(people, R.choice([1, 1, 2])):
            facts.append(("founded", person, company))
    for company in R.sample(companies, 24):
        for investor in R.sample(funds * 2 + people[40:60], R.choice([1, 2, 3])):
            facts.append(("invested_in", investor, company))
    owned = R.sample(companies, 22)
    for company in owned[:12]:
        facts.append(("acquired", R.choice([c for c in companies if c not in owned]), company))
    for company in owned[12:]:
        facts.append(("parent_company", company, R.choice(companies[:6] + funds[:2])))
    for meeting in meetings:
        for person in R.sample(people, R.choice([2, 3, 3, 4, 5])):
            facts.append(("attended", person, meeting))
    for _ in range(34):
        facts.append(("met_with", *R.sample(people, 2)))
    for members in staff.values():
        for person in members[1:4]:
            facts.append(("reports_to", person, members[0]))
    for i, project in enumerate(projects):
        for other in R.sample(projects[:i], min(i, R.choice([0, 1, 2]))):
            facts.append(("depends_on", project, other))
        facts.append(("maintains", R.choice(people[:20]), project))
    for new, old in zip(projects[10:], projects[:6]):
        facts.append(("replaces", new, old))
    for i in range(26):
        about = R.choice([f for f in facts if f[0] in ("invested_in", "acquired")])
        word = {"invested_in": "round", "acquired": "sale"}[about[0]]
        note = Note("deals", f"{about[2].title} {word} {i + 1}", i)
        note.about = about
        deals.append(note)
    facts = [(r, s, o) for r, s, o in dict.fromkeys(facts) if s is not o and not (s.id == o.id)]
    facts = [f for f in facts if f[0] != "parent_company" or f[1] is not f[2]]
    return people + companies + funds + meetings + deals + projects, facts


def state(note, form, others):
    """Writes one statement of a note about the notes `others`."""
    kind, _, name = form.partition(":")
    links = [link(other) for other in others]
    if kind == "fm":
        note.properties.setdefault(name, []).extend(links)
    elif kind == "dv":
        note.fields.append(f"{name}:: {', '.join(links)}")
    elif kind == "label":
        note.fields.append(f"{name}: {', '.join(links)}")
    elif kind == "row":
        note.rows.append(f"| {name} | {', '.join(links)} |")
    elif kind == "head":
        note.sections.append((name, links))
    else:
        note.lines.append(note.words(form).replace("{l}", joined(others)))


def place(notes, facts):
    """States each fact in one note, one in five of them in both ends' notes; returns the rows of facts.tsv."""
    by_end, stated = collections.OrderedDict(), []
    hosts = [n for n in notes if n.folder in ("meetings", "deals")]
    for relation, s, o in facts:
        deal = next((n for n in hosts if n.folder == "deals" and n.about == (relation, s, o)), None)
        chance = R.random()
        if relation in THIRD and (deal or chance < .17):
            host = deal or R.choice([n for n in hosts if n.folder == "meetings"])
            text = THIRD[relation].splitlines()[host.writer]
            text = s.words(text).replace("{s}", link(s)).replace("[[{O}]]", link(o)).replace("{o}", link(o))
            (host.bullets if text.startswith("- ") else host.lines).append(text)
            stated.append((relation, s.id, o.id, "third", host.id))
            continue
        share = {"attended": .12, "met_with": 1, "works_at": .6, "worked_at": .75, "founded": .5}.get(relation, .5)
        ends = ["s"] if R.random() < share or relation == "met_with" else ["o"]
        if R.random() < .2 and relation not in ("met_with", "attended"):
            ends = ["s", "o"]
        for end in ends:
            by_end.setdefault((relation, end, s if end == "s" else o), []).append(o if end == "s" else s)
    for (relation, end, note), others in by_end.items():
        form = R.choice((SUBJECT if end == "s" else OBJECT)[relation].splitlines()[note.writer].split("|"))
        if "{l}" in form and relation in ("works_at", "worked_at") and end == "s":
            others, rest = others[:1], others[1:]
            for other in rest:
                state(note, R.choice(SUBJECT[relation].splitlines()[note.writer].split("|")), [other])
                stated.append((relation, note.id, other.id, "sentence", note.id))
        state(note, form, others)
        kind = form.partition(":")[0] if form.partition(":")[0] in ("fm", "dv", "head", "label", "row") else "sentence"
        for other in others:
            s, o = (note, other) if end == "s" else (other, note)
            stated.append((relation, s.id, o.id, kind, note.id))
    return stated


def traps(notes, facts):
    """Writes sentences that only seem to state a relation; returns the rows of traps.tsv."""
    true, rows = {(r, s.id, o.id) for r, s, o in facts}, []
    pool = collections.defaultdict(list)
    for relation, s, o in facts:
        pool[relation].append((s, o))
    for relation, texts in TRAPS.items():
        for i in range(13):
            s, o = R.choice(pool[relation])[0], R.choice(pool[relation])[1]
            if s is o or (relation, s.id, o.id) in true or (relation, o.id, s.id) in true:
                continue
            host = R.choice([s, o] + [n for n in notes if n.folder == "meetings"][:8])
            text = s.words(texts[i % len(texts)])
            host.lines.append(text.replace("{s}", link(s)).replace("{o}", link(o)))
            rows.append((relation, s.id, o.id, host.id))
    return rows


def body(note):
    blocks, prose = [], note.lines[:]
    R.shuffle(prose)
    if note.fields:
        blocks.append("\n".join(note.fields))
    if note.rows:
        blocks.append("\n".join(["| | |", "| --- | --- |", *note.rows]))
    for start in range(0, len(prose), 4):
        blocks.append(" ".join(prose[start:start + 4]))
    if note.bullets:
        blocks.append("\n".join(note.bullets))
    for name, links in note.sections:
        blocks.append(f"## {name}\n\n" + "\n".join(f"- {item}" for item in links))
    return "\n\n".join(blocks)


def fill(notes):
    """Adds what is no fact, until a note has some sixty words."""
    for note in notes:
        bank = FILL[note.folder][:]
        R.shuffle(bank)
        if R.random() < .5:
            note.lines.append(R.choice(NEUTRAL).replace("{l}", link(R.choice(notes))))
        while bank and len(body(note).split()) < R.randint(45, 90):
            note.lines.append(note.words(bank.pop()))


def render(note):
    head = ["---", f"id: {note.id}"]
    if note.writer % 2 == 0:
        head.append("type: " + {"people": "person", "companies": "company", "meetings": "meeting", "deals": "deal", "projects": "project"}[note.folder])
    elif note.writer % 3 == 0:
        head.append("tags: [" + {"people": "person", "companies": "org", "meetings": "meeting", "deals": "deal", "projects": "software"}[note.folder] + "]")
    if note.aliases:
        head.append(f"aliases: [{', '.join(note.aliases)}]")
    if note.folder == "meetings":
        head.append(f"date: {note.date}")
    for key, links in note.properties.items():
        head.append(f'{key}: "{links[0]}"' if len(links) == 1 else f"{key}:")
        head.extend(f'  - "{item}"' for item in links if len(links) > 1)
    title = f"# {note.title}\n\n" if note.writer in (0, 4, 6, 7) else ""
    return "\n".join(head) + f"\n---\n\n{title}{body(note)}\n"


def questions(facts):
    """Rows of (question, relation, named note, answers)."""
    answers = collections.OrderedDict()
    for relation, s, o in facts:
        answers.setdefault((relation, 0, s), []).append(o)
        answers.setdefault((relation, 0 if relation == "met_with" else 1, o), []).append(s)
    rows = []
    for relation, (count, share) in QUOTA.items():
        for end, number in ((0, round(count * share)), (1, count - round(count * share))):
            keys = [k for k, v in answers.items() if k[0] == relation and k[1] == end and len({n.id for n in v}) <= 5]
            R.shuffle(keys)
            keys.sort(key=lambda k: len(answers[k]) == 1 and R.random() < .5)
            assert len(keys) >= number, (relation, end, len(keys), number)
            for i, key in enumerate(keys[:number]):
                note, wordings = key[2], ASK[relation][end]
                name = note.topic if note.folder == "meetings" else note.title
                if note.folder == "companies" and note.aliases and R.random() < .5:
                    name = note.aliases[0]
                if note.folder == "meetings" and R.random() < .6:
                    name = "the " + name[0].lower() + name[1:]
                text = wordings[i % len(wordings)].format(n=name)
                rows.append((text.lower() if R.random() < .12 else text, relation, note, sorted({n.id for n in answers[key]})))
    R.shuffle(rows)
    return rows


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit("usage: relations_3.py FOLDER")
    folder = pathlib.Path(sys.argv[1])
    if (folder / "notes").exists() and any((folder / "notes").iterdir()):
        sys.exit(f"{folder}/notes has notes already: give a new folder")
    notes, facts = world()
    for note in notes:
        if note.folder == "companies" and R.random() < .3:
            note.aliases.append(note.title.split()[0])
    stated = place(notes, facts)
    trapped = traps(notes, facts)
    fill(notes)
    for note in notes:
        path = folder / "notes" / note.folder / f"{note.title.replace(':', '')}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(render(note), encoding="utf-8")
    asked = questions(facts)
    with open(folder / "queries.jsonl", "w", encoding="utf-8") as queries, open(folder / "qrels.tsv", "w", encoding="utf-8") as qrels, open(folder / "queries-meta.tsv", "w", encoding="utf-8") as meta:
        for i, (text, relation, note, ids) in enumerate(asked):
            qid = f"e{i + 1:03}"
            queries.write(json.dumps({"qid": qid, "text": text}) + "\n")
            qrels.writelines(f"{qid}\t{answer}\t1\n" for answer in ids)
            meta.write(f"{qid}\t{relation}\t{note.id}\n")
    for name, rows in (("facts.tsv", stated), ("traps.tsv", trapped)):
        (folder / name).write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    print(f"{len(notes)} notes, {len(asked)} queries, {sum(len(row[3]) for row in asked)} judgements, {len(stated)} statements, {len(trapped)} traps")


if __name__ == "__main__":
    main()
