package App::Prove::Plugin::Calve::Harness;

# The harness of prove's user, which starts a server before each test and ends it after.

use strict;
use warnings;
use 5.014;

use Scalar::Util qw(refaddr);
use Test::Calve;

our $VERSION = '0.1.0';
our @ISA;

my $template;

sub prepare {
    (my $class, $template, my $base) = @_;
    # As prove has it: a class, and perhaps what to import from it.
    my ($name, $arguments) = split /=/, $base, 2;
    (my $file = "$name.pm") =~ s{::}{/}g;
    require $file;
    $name->import(defined $arguments ? split /,/, $arguments : ());
    @ISA = $name;
    return;
}

sub make_parser {
    my ($self, $job) = @_;
    my $server = Test::Calve->new(template => $template) // die "prove: $Test::Calve::errstr\n";
    my $environment = $server->environment;
    # The test is started in here.
    local @ENV{ keys %$environment } = values %$environment;
    delete local @ENV{ grep { !defined $environment->{$_} } keys %$environment };
    my ($parser, $session) = $self->SUPER::make_parser($job);
    $self->{calve_servers}{ refaddr $parser } = $server;
    return ($parser, $session);
}

sub finish_parser {
    my ($self, $parser, $session) = @_;
    my $finished = $self->SUPER::finish_parser($parser, $session);
    my $server = delete $self->{calve_servers}{ refaddr $parser };
    $server->stop if $server;
    return $finished;
}

1;

__END__

=encoding utf8

=head1 NAME

App::Prove::Plugin::Calve::Harness - the harness of App::Prove::Plugin::Calve

=head1 DESCRIPTION

See L<App::Prove::Plugin::Calve>.

=cut
