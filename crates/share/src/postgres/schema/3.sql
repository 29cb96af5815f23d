set local role sidenote_owner;

-- Whether a path is that of a note: a visible Markdown file.
create function sidenote.is_note(path text) returns boolean language sql immutable
    return lower(right(path, 3)) = '.md' and left(path, 1) <> '.' and position('/.' in path) = 0;

-- How much the files of a vault are now, kept by the difference of each change; its quotas, null for the default of servers;
-- and when it was deleted, and from when on it may be removed for good.
alter table sidenote.vault
    add bytes bigint not null default 0,
    add notes bigint not null default 0,
    add max_bytes bigint,
    add max_notes bigint,
    add max_changes bigint,
    add deleted_at timestamptz,
    add removable_at timestamptz;

do $$
declare
    one uuid;
begin
    for one in select id from sidenote.vault loop
        perform set_config('sidenote.vault', one::text, true);
        update sidenote.vault v set (bytes, notes) = (
            select coalesce(sum(octet_length(b.bytes)), 0), count(*) filter (where sidenote.is_note(f.path))
            from sidenote.file f join sidenote.blob b on b.vault = f.vault and b.hash = f.hash where f.vault = one
        ) where v.id = one;
    end loop;
    perform set_config('sidenote.vault', '', true);
end
$$;

-- The changes of a person by time.
create index on sidenote.event (vault, coalesce(issuer, ''), coalesce(subject, ''), at);

-- The names that vaults had before they were renamed.
create table sidenote.former_name (
    name text collate "C" primary key,
    vault uuid not null references sidenote.vault
);
alter table sidenote.former_name enable row level security, force row level security;
create policy own on sidenote.former_name using (vault = sidenote.current_vault());
create policy named on sidenote.former_name for select
    using (name = nullif(current_setting('sidenote.name', true), ''));
create policy owner on sidenote.former_name for select to sidenote_owner using (true);
grant select on sidenote.former_name to sidenote_app;

grant update (bytes, notes) on sidenote.vault to sidenote_app;

-- A vault by its name or one that it had before, which is set for row-level security then; null if there is none.
create function sidenote.find_vault(wanted text) returns uuid language plpgsql as $$
declare
    found uuid;
begin
    perform set_config('sidenote.name', wanted, true);
    select v.id into found from sidenote.vault v where v.name = wanted;
    if found is null then
        select f.vault into found from sidenote.former_name f where f.name = wanted;
    end if;
    perform set_config('sidenote.vault', coalesce(found::text, ''), true);
    return found;
end
$$;

-- The rights of a person in a vault, under any of some names, with the name that the vault has and whether it is deleted, in one
-- statement.
drop function sidenote.rights_of(text, text[]);
create function sidenote.rights_of(
    vault_name text, names text[],
    out id uuid, out role text, out is_blocked boolean, out present_name text, out is_deleted boolean
) language plpgsql as $$
begin
    id := sidenote.find_vault(vault_name);
    select v.name, v.deleted_at is not null into present_name, is_deleted
        from sidenote.vault v where v.id = rights_of.id;
    select m.role into role from sidenote.member m
        where m.vault = rights_of.id and m.who = any (names)
        order by array_position(array['admin', 'writer', 'reader'], m.role) limit 1;
    select coalesce(bool_or(newest.is_blocked), false) into is_blocked from (
        select distinct on (b.who) b.is_blocked from sidenote.block b
        where b.who = any (names) order by b.who, b.id desc
    ) newest;
end
$$;

reset role;
